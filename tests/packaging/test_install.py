"""`cmake --install` into an empty folder, then a stage outside the tree: configured, built, asked what it writes, and run in a
pipeline between installed stages.

Usage: test_install.py BUILD_FOLDER OUTSIDE_FOLDER CMAKE CXX PROGRAM...
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD, OUTSIDE, CMAKE, CXX = sys.argv[1:5]
PROGRAMS = sys.argv[5:]

PIPELINE = """
[pipeline]
name = "outside"
device = "cpu"
size = [96, 64]

[[stage]]
name = "geometry"
run = "carousel-geometry"
triangles = 2000

[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]

[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]

[[stage]]
name = "invert"
run = "INVERT"
inputs = ["fragment"]

[[stage]]
name = "display"
run = "carousel-display"
inputs = ["PICTURES"]
"""


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="carousel-install-")
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        build = os.path.join(cls.folder.name, "outside")
        cls.configure(build, "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON")  # a stage on the CPU needs no toolkit
        run(CMAKE, "--build", build)
        cls.invert = os.path.join(build, "carousel-invert")

    @classmethod
    def configure(cls, build, *more):
        run(CMAKE, "-S", OUTSIDE, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={cls.prefix}", f"-DCMAKE_CXX_COMPILER={CXX}",
            "-DCMAKE_BUILD_TYPE=Release", *more)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def describe(self, settings, inputs):
        asked = {"stage": "invert", "width": 64, "height": 48, "settings": settings, "inputs": inputs}
        done = subprocess.run([self.invert, "--describe"], input=json.dumps(asked), capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout)

    def picture(self):
        plane = {"name": "color", "element": "u8", "shape": [48, 64, 4], "offset": 256}
        return [{"stage": "fragment", "format": {"type": "carousel.image.rgba8", "planes": [plane], "constants": {}}}]

    def test_what_is_installed(self):
        expected = ["include/carousel/stages/sdk/stage.hpp", "include/carousel/device/backend.hpp", "share/carousel/pipelines/demo.toml",
                    "include/carousel/device/cpu/memfd.hpp", "include/carousel/kernels/body/setup.hpp"]
        for name in expected:
            self.assertTrue(os.path.exists(os.path.join(self.prefix, name)), name)
        found = subprocess.run(["grep", "-rlI", "-e", BUILD, self.prefix], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "", "installed files name the build folder")

    def test_a_project_that_may_find_the_toolkit_is_configured_too(self):
        self.configure(os.path.join(self.folder.name, "with-toolkit"))

    def test_no_empty_folder_is_installed(self):
        self.assertEqual([folder for folder, below, files in os.walk(self.prefix) if not below and not files], [])

    def test_programs_and_pipeline_files_come_along(self):
        self.assertIn("carousel", PROGRAMS)
        for name in PROGRAMS:
            installed = os.path.join(self.prefix, "bin", name)
            self.assertTrue(os.access(installed, os.X_OK), installed)
            # It starts: no library is missing. (The helper processes know no --help and say so with 2.)
            done = subprocess.run([installed, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            self.assertIn(done.returncode, (0, 2), installed + "\n" + done.stderr)
            if done.returncode == 0:  # help that didn't get there is no success
                with open("/dev/full", "w", encoding="utf-8") as full:
                    done = subprocess.run([installed, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, check=False)
                self.assertEqual(done.returncode, 75, installed)
                self.assertIn("stdout", done.stderr, installed)
        source = os.path.normpath(os.path.join(OUTSIDE, "../../../pipelines"))
        for name in (n for n in os.listdir(source) if n.endswith(".toml")):
            self.assertTrue(os.path.isfile(os.path.join(self.prefix, "share/carousel/pipelines", name)), name)

    def test_the_outside_stage_describes_itself(self):
        code, answer = self.describe({"alpha": True}, self.picture())
        self.assertEqual(code, 0, answer)
        self.assertEqual(answer["format"]["planes"][0]["shape"], [48, 64, 4])

    def test_the_outside_stage_refuses_an_unknown_key_with_a_guess(self):
        code, answer = self.describe({"alhpa": True}, self.picture())
        self.assertEqual(code, 2, answer)
        self.assertEqual(answer["error"]["key"], "alhpa")
        self.assertIn("alpha", answer["error"]["message"])

    def run_pipeline(self, pictures):
        """The report of 20 frames whose pictures come from that stage."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        file, report = os.path.join(folder, "outside.toml"), os.path.join(folder, "report.json")
        text = PIPELINE.replace("PICTURES", pictures).replace("INVERT", self.invert)
        if pictures != "invert":
            before, after = text.split('[[stage]]\nname = "invert"')
            text = before + after[after.index("[[stage]]"):]
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
        run(os.path.join(self.prefix, "bin", "carousel"), "run", file, "--frames", "20", "--out", "", "--report", report,
            "--name", f"outside-{os.getpid()}-{pictures}", stdin=subprocess.DEVNULL)
        with open(report, encoding="utf-8") as f:
            return json.load(f)

    def test_the_outside_stage_runs_in_a_pipeline_of_installed_programs(self):
        plain, inverted = self.run_pipeline("fragment"), self.run_pipeline("invert")
        for report in (plain, inverted):
            self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [20, 0, 0, 0])
        self.assertNotEqual(plain["image_hash"], inverted["image_hash"])


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
