"""An installed Carousel with Python: the module is imported from PREFIX, and a stage that is a .py file is run from there.

Usage: test_installed_python.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from installed import Installation, run

SETTINGS = ("--frames", "30", "--size", "96x64", "--device", "cpu", "--set", "geometry.triangles=500", "--out", "")


class InstalledPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])
        cls.addClassCleanup(cls.all.end)
        modules = glob.glob(os.path.join(cls.all.prefix, "lib*/**/carousel/_carousel*.so"), recursive=True)
        if not modules:
            raise unittest.SkipTest("the Python module is not built here (python3-dev, pybind11-dev)")
        cls.folder = os.path.dirname(os.path.dirname(modules[0]))
        cls.environment = {k: v for k, v in cls.all.environment.items() if k != "PYTHONPATH"}
        for python in (os.environ.get("CAROUSEL_PYTHON"), sys.executable, "/usr/bin/python3"):
            if python and subprocess.run([python, "-c", "import numpy, carousel"], capture_output=True, check=False,
                                         env={**cls.environment, "PYTHONPATH": cls.folder}).returncode == 0:
                break
        else:
            raise unittest.SkipTest("no interpreter here that the module was built for and that has NumPy")
        cls.python = cls.environment["CAROUSEL_PYTHON"] = python

    def script(self, text, *words):
        return run(self.python, "-B", "-c", text, *words, cwd=self.all.folder, env={**self.environment, "PYTHONPATH": self.folder})

    def carousel(self, *words, **options):
        return run(self.all.program("carousel"), *words, env=self.environment, **options)

    def check_report(self, path):
        with open(path, encoding="utf-8") as text:
            report = json.load(text)
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [30, 0, 0, 0])

    def test_the_package_is_whole_and_imported_from_the_prefix(self):
        output = self.script("import carousel; print(carousel.__file__); print(carousel._carousel.__file__)").split()
        self.assertEqual([os.path.dirname(os.path.dirname(path)) for path in output], [self.folder] * 2)
        source = os.path.join(self.all.root, "stages/python/package")
        there = {os.path.relpath(os.path.join(at, name), self.folder) for at, _, names in os.walk(self.folder) for name in names}
        wanted = {os.path.relpath(os.path.join(at, name), source) for at, _, names in os.walk(source) for name in names
                  if not name.endswith(".pyc")}
        self.assertEqual({name for name in there if not re.search(r"\.(so|pyc)$", name)}, wanted)

    def test_a_stage_in_python_runs_from_the_prefix_alone(self):
        tint = self.all.copy_of_example("tint")
        # The installed programs do not depend on the build: a copy of them cannot find the build's own
        # package.
        moved = shutil.copytree(self.all.prefix, os.path.join(self.all.folder, "elsewhere"))
        report = os.path.join(self.all.folder, "tint.json")
        for prefix in (self.all.prefix, moved):
            environment = {**self.environment, "PATH": os.path.join(prefix, "bin") + ":/usr/bin:/bin"}
            output = run(os.path.join(prefix, "bin/carousel"), "run", os.path.join(tint, "tint.toml"), *SETTINGS, "--report", report,
                       "--no-color", env=environment)
            self.check_report(report)
            self.assertNotIn("died", output)

    def test_a_new_stage_in_python_follows_its_own_instructions(self):
        for name, options, settings in (("warm", [], "--out ''"), ("counts", ["--sink"], "")):
            folder = os.path.join(self.all.folder, name)
            output = self.carousel("new", "stage", name, "--python", *options, folder)
            commands = [line.strip() for line in output.split("Next:\n")[1].splitlines()]
            self.assertTrue(any("carousel run" in c and "--frames 100" in c for c in commands), output)
            text = "set -e\n" + "\n".join(commands).replace("python3", self.python)
            run("bash", "-c", text.replace("--frames 100", f"--frames 30 --device cpu {settings}"), env=self.environment)
        self.assertEqual(len(glob.glob(os.path.join(self.all.folder, "counts", "runs", "*", "counts.csv"))), 1)

    def test_a_pipeline_is_driven_from_the_installed_module(self):
        tint = os.path.join(self.all.copy_of_example("tint"), "tint.toml")
        output = self.script("""
import sys, carousel, numpy
run = carousel.Pipeline(sys.argv[1]).start(device="cpu", fps=60, options=["--out", "", "--size", "96x64"])
with run.open() as view:
    f = view.latest("fragment").next()
    print(numpy.asarray(f["color"].cpu()).shape, f.frame_number >= 0, f.capture_ns >= 0)
run.kill("tint")
while run.ps() and not any(s["name"] == "tint" and s["restarts"] for s in run.ps()["stages"]): pass
run.end()
print([run.report()[k] for k in ("lost", "repeated", "torn", "restarts")])
""", tint)
        self.assertEqual(output.splitlines(), ["(64, 96, 4) True True", "[0, 0, 0, 1]"])


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
