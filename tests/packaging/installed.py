"""An installation of this build in a folder of its own, and projects that are built against it."""
import os
import re
import shutil
import subprocess
import tempfile


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Installation:
    """Usage of the tests: BUILD_FOLDER ROOT CMAKE CXX NVCC ...; NVCC is "none" where CUDA isn't built."""

    def __init__(self, words):
        self.build, self.root, self.cmake, self.cxx, self.nvcc = words[:5]
        self.temporary = tempfile.TemporaryDirectory(prefix="carousel-install-")
        self.folder = self.temporary.name
        self.prefix = os.path.join(self.folder, "prefix")
        self.examples = os.path.join(self.root, "stages/examples")
        run(self.cmake, "--install", self.build, "--prefix", self.prefix)
        # Runs of their own: whoever else runs pipelines here is not in the way.
        runtime = os.path.join(self.folder, "runtime")
        os.mkdir(runtime, 0o700)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": runtime,
                            "PATH": os.path.join(self.prefix, "bin") + ":" + os.environ["PATH"]}

    def end(self):
        self.temporary.cleanup()

    def program(self, name):
        return os.path.join(self.prefix, "bin", name)

    def carousel(self, *words, **options):
        return run(self.program("carousel"), *words, env=self.environment, **options)

    def copy_of_example(self, name):
        """A folder with the example, which nobody else changes."""
        folder = os.path.join(tempfile.mkdtemp(dir=self.folder), name)
        shutil.copytree(os.path.join(self.examples, name), folder)
        return folder

    def configure(self, folder, *more):
        """The project in `folder`, in its build/, as its pipeline file expects it."""
        return run(self.cmake, "-S", folder, "-B", os.path.join(folder, "build"), "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={self.cxx}", *more)

    def build_project(self, folder, *more):
        self.configure(folder, *more)
        run(self.cmake, "--build", os.path.join(folder, "build"), "-j2")

    def build_without_toolkit(self, folder):
        """As on a machine that has no CUDA Toolkit: a stage on the CPU needs none."""
        self.build_project(folder, "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON")

    def build_with_nvcc(self, folder):
        self.build_project(folder, f"-DCMAKE_CUDA_COMPILER={self.nvcc}", "-DCMAKE_CUDA_ARCHITECTURES=75",
                           f"-DCMAKE_CUDA_HOST_COMPILER={self.cxx}")

    def test_project(self, folder):
        """The output of ctest, whose tests must not have failed."""
        output = run("ctest", "--test-dir", os.path.join(folder, "build"), "--output-on-failure")
        if not re.search(r"tests passed, 0 tests failed", output):
            raise AssertionError(output)
        return output
