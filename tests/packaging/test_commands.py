"""Runs the commands of all documents, each document in a folder of its own, on the CPU and with small pictures.

Usage: test_commands.py BUILD [DOCUMENT...]; documents.toml has the differences to what a reader types."""
import os
import re
import shutil
import subprocess
import sys
import unittest

import document_commands as documents
from installed import Installation

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "python"))
import interpreter  # noqa: E402

SMALL = ((r"(?m)^size = \[.*\]", "size = [96, 64]"), (r"(?m)^triangles = \d+", "triangles = 500"), (r'(?m)^device = "auto"', 'device = "cpu"'))
BUILD, ONLY = os.path.abspath(sys.argv[1]), sys.argv[2:]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def cached(name):
    """A value of the build's CMakeCache.txt."""
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(rf"^{name}:\w+=(.*)$", cache.read(), re.M)[1]


def small_pipelines(folder):
    """Pipeline files below the folder become small and run on the CPU."""
    for at, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".toml"):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                for pattern, small in SMALL:
                    text = re.sub(pattern, small, text)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation([BUILD, ROOT, cached("CMAKE_COMMAND"), cached("CMAKE_CXX_COMPILER"), "none"])
        cls.plan = documents.plan()
        small_pipelines(os.path.join(cls.all.prefix, "share"))
        cls.python = os.path.join(cls.all.folder, "python")   # `python3` of the documents is the interpreter of this test
        os.mkdir(cls.python)
        os.symlink(sys.executable, os.path.join(cls.python, "python3"))

    @classmethod
    def tearDownClass(cls):
        cls.all.end()

    def scene(self, path):
        """What a reader of the document has: the source tree with a build, and an installation."""
        folder = os.path.join(self.all.folder, re.sub(r"\W+", "-", path))
        os.makedirs(os.path.join(folder, "build"))
        shutil.copytree(os.path.join(ROOT, "stages/examples"), os.path.join(folder, "stages/examples"),
                        ignore=shutil.ignore_patterns("build", "runs", "__pycache__"))
        os.mkdir(os.path.join(folder, "pipelines"))
        for name in os.listdir(os.path.join(ROOT, "pipelines")):
            if name.endswith((".toml", ".net")):
                shutil.copy(os.path.join(ROOT, "pipelines", name), os.path.join(folder, "pipelines"))
        small_pipelines(folder)
        release = os.path.join(folder, "build/release")   # a folder, so that .. leads back to this one
        os.mkdir(release)
        for name in os.listdir(BUILD):
            if name.startswith("carousel") or name == "python":
                os.symlink(os.path.join(BUILD, name), os.path.join(release, name))
        return folder

    def environment(self, path):
        # Runs of this document alone. The name is short: that of a socket has at most 107 bytes.
        runtime = os.path.join(self.all.folder, f"r{abs(hash(path)) % 10000}")
        os.makedirs(runtime, mode=0o700)
        return {**self.all.environment, "XDG_RUNTIME_DIR": runtime, "PATH": self.python + ":" + self.all.environment["PATH"], "CXX": self.all.cxx,
                "CAROUSEL_PYTHON": sys.executable, "PYTHONPATH": os.path.join(BUILD, "python"), "PYTHONDONTWRITEBYTECODE": "1"}

    def steps(self, document, commands):
        steps = [(text, text, 0) for text in document.get("before", [])]
        for command, row in documents.with_entries(document, commands):
            if "not_run" not in row:
                text = documents.as_run(command, row, self.plan["shorter"])
                for old, new in (("/opt/carousel-0.3", self.all.prefix), ("/opt/carousel", self.all.prefix), ("=PREFIX", "=" + self.all.prefix),
                                 ("/usr/share/carousel", self.all.prefix + "/share/carousel"), ("PYTHONPATH=FOLDER ", "")):
                    text = text.replace(old, new)
                steps.append((command, text, row.get("code", 0)))
        return steps

    def test_each_document(self):
        ran = 0
        for document in self.plan["document"]:
            path = document["path"]
            if ONLY and path not in ONLY:
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                steps = self.steps(document, documents.commands_of(file.read()))
            if len(steps) == len(document.get("before", [])):
                continue
            with self.subTest(path):
                folder = self.scene(path)
                environment = self.environment(path)
                inside = os.path.join(folder, document.get("folder", ""))
                try:
                    done = documents.follow(steps, inside, environment, document.get("limit", 300), document.get("pause", 0))
                finally:
                    for name in document.get("ends", ["demo"]):
                        subprocess.run([self.all.program("carousel"), "down", "-p", name], env=environment, capture_output=True, check=False, timeout=60)
                    subprocess.run([self.all.program("carousel"), "clean"], env=environment, capture_output=True, check=False, timeout=60)
                ran += len(done)
                print(f"{path}: {len(done)} of {len(steps)} commands", flush=True)
                for shown, expected, code, text in done:
                    self.assertEqual(code, expected, f"{path}: {shown}\n{text[-3000:]}")
                self.assertEqual(len(done), len(steps))
                for shown, _, _, text in done:
                    self.assertIn(documents.entry_for(document, shown).get("prints", ""), text, shown)
        self.assertGreater(ran, 0)


if __name__ == "__main__":
    interpreter.use(BUILD)
    unittest.main(argv=sys.argv[:1], verbosity=2)
