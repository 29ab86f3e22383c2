"""Packages of this build, without a bare root: what is in them, and a tarball that is moved. Usage: test_packages.py BUILD

test_bare.py and test_image.py install and use them."""
import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "pipelines", "setup"), os.path.join(ROOT, "tests", "support")]
import package  # noqa: E402
from processes import skip  # noqa: E402

package.COMPRESSION = 0


class Packages(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="carousel-packages-")
        self.addCleanup(temporary.cleanup)
        self.scratch, self.to = os.path.join(temporary.name, "scratch"), os.path.join(temporary.name, "to")
        os.mkdir(self.scratch)
        os.mkdir(self.to)

    def test_a_tarball_works_under_a_path_with_a_space_and_after_a_move(self):
        tarball, = package.make_tarball(BUILD, self.to, self.scratch, site=False)   # the Debian packages are tested with it
        name = os.path.basename(tarball)[:-len(".tar.gz")]
        self.assertEqual(name, f"carousel-{package.version_of(BUILD)}-linux-x86_64")
        here, there = os.path.join(self.to, "a folder"), os.path.join(self.to, "another folder")
        os.mkdir(here)
        package.run("tar", "-C", here, "-xzf", tarball)
        os.rename(here, there)
        prefix = os.path.join(there, name)
        for program in ("carousel", "carousel-display"):
            for library, path in re.findall(r"^\s*(\S+) => (/.*) \(", package.run("ldd", os.path.join(prefix, "bin", program)), re.M):
                self.assertEqual(os.path.dirname(os.path.realpath(path)) == os.path.realpath(os.path.join(prefix, "lib/carousel")),
                                 not package.SYSTEM.fullmatch(library), f"{program}: {library} => {path}")
        runtime, report = os.path.join(self.to, "runtime"), os.path.join(self.to, "report.json")
        os.mkdir(runtime, 0o700)
        package.run(os.path.join(prefix, "bin/carousel"), "run", os.path.join(prefix, "share/carousel/pipelines/demo.toml"), "--frames", "30",
                    "--size", "96x64", "--device", "cpu", "--set", "geometry.triangles=500", "--out", "", "--report", report,
                    env={"PATH": "/usr/bin:/bin", "HOME": self.to, "XDG_RUNTIME_DIR": runtime})
        with open(report, encoding="utf-8") as text:
            account = json.load(text)
        self.assertEqual([account[k] for k in ("frames", "lost", "repeated", "torn")], [30, 0, 0, 0])

    def test_the_script_refuses_what_it_does_not_know(self):
        script = os.path.join(ROOT, "pipelines", "package")
        self.assertIn("Usage: ./pipelines/package KIND", package.run(script, "--help"))
        for words in ([], ["rpm"], ["deb", "--fast"], ["deb", "--build", self.to, "--to"], ["tarball", "--build", self.to]):
            done = subprocess.run([script, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertRegex(done.stderr, "Usage:|needs a folder|is not a build folder")

    def test_what_is_not_portable_is_refused(self):
        prefix = os.path.join(self.scratch, "prefix")
        os.makedirs(os.path.join(prefix, "bin"))
        package.run("cp", os.path.join(BUILD, "carousel"), os.path.join(prefix, "bin"))
        with self.assertRaises(SystemExit) as refused:
            package.check_portable(prefix)   # its libraries are not in it
        self.assertIn("bin/carousel needs libfmt.so", str(refused.exception))

    def check_man_pages(self, folder):
        """A page per command, with every option of its help, which the formatter accepts."""
        carousel = os.path.join(BUILD, "carousel")
        commands = re.findall(r"^  ([a-z-]+) ", package.run(carousel, "--help").split("Subcommands:")[1].split("Examples:")[0], re.M)
        self.assertIn("chaos", commands)
        self.assertEqual(set(os.listdir(folder)), {"carousel.1.gz", *(f"carousel-{each}.1.gz" for each in commands)})
        for command in commands:
            with gzip.open(os.path.join(folder, f"carousel-{command}.1.gz"), "rt", encoding="utf-8") as text:
                page = text.read()
            shown = page.replace("\\-", "-")
            for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", package.run(carousel, command, "--help"), re.M):
                self.assertIn(option, shown, command)
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Kutf8"], input=page, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), command)

    def check_site(self, folders):
        """The package with the site exists where it can be made; it has the pages of documents, and the generated ones."""
        self.assertEqual("carousel-doc" in folders, not package.make_site.missing_packages())
        if "carousel-doc" in folders:
            site = os.path.join(folders["carousel-doc"], "usr/share/doc/carousel/html")
            for page in ("index.html", "pipelines/docs/operate.html", "reference/keys.html", "reference/commands/run.html", "reference/cpp/index.html",
                         "search/local.js"):
                self.assertTrue(os.path.isfile(os.path.join(site, page)), page)

    def test_debian_packages(self):
        folders = package.debian_folders(BUILD, self.scratch)
        self.check_man_pages(os.path.join(folders["carousel"], "usr/share/man/man1"))
        self.assertEqual(set(folders) - {"python3-carousel", "carousel-viewer", "carousel-doc", "gstreamer1.0-carousel"}, {"carousel", "carousel-dev"})
        self.check_site(folders)
        with open(os.path.join(folders["carousel"], "usr/lib/systemd/system/carousel@.service"), encoding="utf-8") as unit:
            self.assertIn("\nExecStart=/usr/bin/carousel run ", unit.read())
        for folder in folders.values():   # no file names the folder in which the package was made
            for file in package.files_below(folder):
                path = os.path.join(folder, file)
                if not os.path.islink(path):
                    with open(path, "rb") as content:
                        self.assertNotIn(self.scratch.encode(), content.read(), file)
        control = {}
        for name, folder in folders.items():
            with open(os.path.join(folder, "DEBIAN", "control"), encoding="utf-8") as text:
                control[name] = dict(line.split(": ", 1) for line in text.read().splitlines() if not line.startswith(" "))
            self.assertEqual(control[name]["Version"], package.version_of(BUILD))
            self.assertEqual([f for f in package.files_below(folder) if not f.startswith(("usr/", "DEBIAN/"))], [])
            self.assertEqual([b for b in package.binaries_below(folder) if not b.startswith(("usr/bin/", "usr/lib/carousel/python/", "usr/lib/libcarousel-space.so.", "usr/lib/x86_64-linux-gnu/gstreamer-1.0/"))], [])
        depends = control["carousel"]["Depends"]
        for library in ("libc6 (>= 2", "libfmt9", "libstdc++6 (>= "):
            self.assertIn(library, depends)
        for optional in ("cuda", "nvidia", "libucx", "libavformat", "libssl", "libglfw"):   # none of them is needed to install it
            self.assertNotIn(optional, depends)
        self.assertIn("carousel (= ", control["carousel-dev"]["Depends"])
        if os.path.exists(os.path.join(BUILD, "carousel-send")):
            self.assertIn("libucx0", control["carousel"]["Recommends"])
        if "gstreamer1.0-carousel" in folders:
            self.assertIn("libgstreamer1.0-0", control["gstreamer1.0-carousel"]["Depends"])
        if "python3-carousel" in folders:
            self.assertRegex(control["python3-carousel"]["Depends"], r"python3 \(>= 3\.\d+\), python3 \(<< 3\.\d+\)")
            self.assertIn("usr/lib/python3/dist-packages/carousel", package.files_below(folders["python3-carousel"]))

    @unittest.skipUnless(importlib.util.find_spec("wheel") or os.path.exists("/usr/lib/python3/dist-packages/wheel"), "wheel is not installed")
    def test_a_wheel(self):
        if not os.path.isdir(os.path.join(BUILD, "python", "carousel")):
            self.skipTest("the module is not built here")
        path, = package.make_wheel(BUILD, self.to, self.scratch)
        with zipfile.ZipFile(path) as wheel:
            names = {name.split(".data/data/")[-1]: name for name in wheel.namelist()}
            self.assertLessEqual({"carousel/__init__.py", "bin/carousel", "bin/carousel-display", "lib/carousel/libfmt.so.9",
                                  "lib/libcarousel-space.so.0", "lib/carousel/python/carousel_stage.py", "share/carousel/pipelines/demo.toml"}, set(names))
            self.assertEqual([name for name in names if name.endswith((".a", ".hpp", ".cmake"))], [])
            self.assertTrue(wheel.getinfo(names["bin/carousel"]).external_attr >> 16 & 0o111, "pip would install it without the right to run it")
            wheel.extractall(self.to)
        imported = subprocess.run([package.interpreter_for(os.path.basename(path).split("-")[2]), "-c", "import carousel; print(carousel.__version__)"],
                                  env={"PYTHONPATH": self.to, "LD_LIBRARY_PATH": "", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
        self.assertEqual(imported.stdout.strip(), package.version_of(BUILD), imported.stderr)


if __name__ == "__main__":
    if not os.path.exists(os.path.join(BUILD, "carousel-display")):
        skip("this build has no programs")
    unittest.main(argv=sys.argv[:1], verbosity=2)
