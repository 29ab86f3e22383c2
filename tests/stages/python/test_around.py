"""The surroundings of a stage in Python: child processes, another version of Python, rings on another GPU.

Usage: test_around.py BUILD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import interpreter

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Around(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def pipeline(self, middle, more=""):
        path = os.path.join(self.folder.name, "around.toml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "around-{os.getpid()}"\nsize = [64, 36]\ndevice = "cpu"\n{more}\n'
                      f'[[stage]]\nname = "source"\nrun = "{BUILD}/carousel-test-copy"\n'
                      f'[[stage]]\nname = "middle"\nrun = "{middle}"\ninputs = ["source"]\n'
                      f'[[stage]]\nname = "eater"\nrun = "{HERE}/eater.py"\ninputs = ["middle"]\n')
        return carousel.Pipeline(path)

    def whole(self, run, frames, restarts):
        self.assertEqual(run.wait(100), 0, run.log_text(40))
        report = run.report()
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn", "restarts")], [frames, 0, 0, 0, restarts], run.log_text(40))
        self.assertEqual(report["dead_letters"], [])

    def test_a_stage_has_workers_of_multiprocessings_spawn_and_they_end_with_it(self):
        run = self.pipeline(os.path.join(HERE, "pool.py"), "fps = 20").start(frames=60)
        until = time.monotonic() + 60
        while not re.search(r"worker (\d+)", run.log_text(100)) and time.monotonic() < until:
            time.sleep(0.05)
        worker = int(re.search(r"worker (\d+)", run.log_text(100))[1])
        run.kill("middle")
        self.whole(run, 60, 1)
        self.assertNotIn("successor", run.log_text(400))
        until = time.monotonic() + 20
        while is_running(worker) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertFalse(is_running(worker), "the worker of a stage that was killed lives")

    def test_a_module_of_another_python_version_is_reported_in_one_sentence(self):
        package = os.path.join(self.folder.name, "carousel")
        shutil.copytree(os.path.join(BUILD, "python", "carousel"), package)
        for name in os.listdir(package):
            if name.startswith("_carousel") and name.endswith(".so"):
                os.rename(os.path.join(package, name), os.path.join(package, "_carousel.cpython-399-x86_64-linux-gnu.so"))
        done = subprocess.run([sys.executable, "-B", "-c", "import carousel"], env={**os.environ, "PYTHONPATH": self.folder.name},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("carousel was built for Python 3.99, but this interpreter", done.stderr.splitlines()[-1])

    def test_a_module_that_cannot_be_loaded_reports_the_cause(self):
        package = os.path.join(self.folder.name, "carousel")
        shutil.copytree(os.path.join(BUILD, "python", "carousel"), package)
        for name in os.listdir(package):
            if name.startswith("_carousel") and name.endswith(".so"):
                with open(os.path.join(package, name), "wb") as f:
                    f.write(b"no library")
        done = subprocess.run([sys.executable, "-B", "-c", "import carousel"], env={**os.environ, "PYTHONPATH": self.folder.name},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("was built for", done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], "_carousel.*(ELF|short|invalid)")

    def test_without_the_compiled_module_the_import_names_the_build_command_and_the_place(self):
        source = os.path.join(HERE, "..", "..", "..", "stages", "python", "package")
        done = subprocess.run([sys.executable, "-B", "-c", "import carousel"], env={**os.environ, "PYTHONPATH": source},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], "^ImportError: carousel's compiled module is not in .*stages/python/package/carousel: "
                                                       "build it.* --target python_package .*build/release/python in PYTHONPATH$")
        self.assertNotIn("circular", done.stderr)

    def test_the_package_is_installed_where_its_module_was_built_and_else_not_at_all(self):
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as text:
            cmake = re.search(r"^CMAKE_COMMAND:INTERNAL=(.*)$", text.read(), re.M)[1]
        with open(os.path.join(BUILD, "stages/python/cmake_install.cmake"), encoding="utf-8") as text:
            built = text.read()
        installs, unbuilt = (os.path.join(self.folder.name, name) for name in ("unbuilt.cmake", "unbuilt"))
        for script, some in ((built, True), (built.replace(f"{BUILD}/python/", f"{unbuilt}/"), False)):
            prefix = os.path.join(self.folder.name, f"prefix-{some}")
            with open(installs, "w", encoding="utf-8") as out:
                out.write(script)
            done = subprocess.run([cmake, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_COMPONENT=python", "-P", installs],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            there = {name for _, _, names in os.walk(prefix) for name in names}
            self.assertEqual({"__init__.py", "carousel_stage.py", "py.typed"} <= there and any(n.endswith(".so") for n in there), some, there)
            self.assertEqual(bool(there), some, there)

    def test_rings_on_another_gpu_are_mapped_and_never_copied_for_a_stage_in_python(self):
        """Copies are in the frame's queue; a stream that was not passed to Carousel is not ordered after
        them."""
        os.environ["CAROUSEL_TEST_PEER_RINGS"] = "1"
        self.addCleanup(os.environ.pop, "CAROUSEL_TEST_PEER_RINGS")
        chosen = "rings on another GPU are reached "
        for middle, choices in ((f"{BUILD}/carousel-test-copy", 2), (f"{HERE}/copy_numpy.py", 1)):
            run = self.pipeline(middle).start(frames=400)   # the choice takes 256 frames
            self.whole(run, 400, 0)
            self.assertEqual(run.log_text(400).count(chosen), choices, middle)   # including the source's own; not the sink's


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
