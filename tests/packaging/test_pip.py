"""`pip install .`: pyproject.toml names what the build has, and if scikit-build-core is available, the wheel is complete.

Usage: test_pip.py ROOT [--wheel]"""
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile

ROOT = os.path.abspath(sys.argv[1])
PACKAGE = os.path.join(ROOT, "stages/python/package")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        return text.read()


class Project(unittest.TestCase):
    def setUp(self):
        self.project = tomllib.loads(read("pyproject.toml"))

    def test_it_names_what_the_build_has(self):
        cmake, top = read("stages/python/CMakeLists.txt"), read("CMakeLists.txt")
        self.assertEqual(self.project["project"]["version"], re.search(r"project\(carousel VERSION (\S+)", top).group(1))
        build = self.project["tool"]["scikit-build"]
        self.assertEqual(build["cmake"]["version"], ">=" + re.search(r"cmake_minimum_required\(VERSION (\S+)\)", top).group(1))
        for target in build["build"]["targets"]:
            self.assertIn(f"add_custom_target({target} ", cmake)
        for component in build["install"]["components"]:
            self.assertIn(f"COMPONENT {component}", cmake)
        for define in build["cmake"]["define"]:
            self.assertIn(f"option({define} ", top)

    def test_every_file_of_the_package_is_installed(self):
        cmake = read("stages/python/CMakeLists.txt")
        listed = set(re.search(r"set\(package_files ([^)]*)\)", cmake).group(1).split())
        there = {os.path.relpath(f, PACKAGE) for f in glob.glob(f"{PACKAGE}/**", recursive=True) if os.path.isfile(f)
                 and "__pycache__" not in f}
        self.assertEqual(listed, there)


class Wheel(unittest.TestCase):
    def test_a_wheel_has_the_module(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT,
                                   "-C", f"build-dir={folder}/build"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            wheel, = glob.glob(f"{folder}/*.whl")
            names = zipfile.ZipFile(wheel).namelist()
            self.assertIn("carousel/__init__.py", names)
            self.assertIn("carousel_stage.py", names)
            self.assertTrue(any(re.fullmatch(r"carousel/_carousel\..*\.so", name) for name in names), names)
            subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, f"{folder}/there"], check=True)
            imported = subprocess.run([sys.executable, "-c", "import carousel; print(carousel.Reader, carousel.__file__)"], text=True,
                                  env={**os.environ, "PYTHONPATH": f"{folder}/there"}, capture_output=True, cwd=folder)
            self.assertIn("/there/carousel/__init__.py", imported.stdout, imported.stderr)


if __name__ == "__main__":
    if "--wheel" in sys.argv and not (importlib.util.find_spec("scikit_build_core") and importlib.util.find_spec("pip")):
        print("no scikit-build-core or no pip for this interpreter: skipped")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + (["Wheel"] if "--wheel" in sys.argv else ["Project"]), verbosity=2)
