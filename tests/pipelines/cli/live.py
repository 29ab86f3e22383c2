"""The common parts of the tests of the running command line: a separate folder of runs, the program, a
pipeline of small pictures on the CPU."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import seeds  # noqa: E402
from processes import is_alive, wait_for  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CAROUSEL = os.path.join(PROGRAMS, "carousel")
with open(os.path.join(PROGRAMS, "CMakeCache.txt"), encoding="utf-8") as cache:
    HAS_EXTRAS = "CAROUSEL_EXTRAS:BOOL=OFF\n" not in cache.read()
SMALL = ("--device", "cpu", "--size", "96x64", "--out", "", "--set", "geometry.triangles=500", "--fps", "30")
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Live(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-live-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "PATH": PROGRAMS + ":" + os.environ["PATH"], "TERM": "xterm"}
        self.environment.pop("NO_COLOR", None)
        self.name = f"live-{os.getpid()}"
        self.addCleanup(self.end_all)

    def end_all(self):
        """All processes that a test has started and a failure has left; by (pid, session), never by name."""
        for name in os.listdir(os.path.join(self.folder, "carousel")) if os.path.isdir(os.path.join(self.folder, "carousel")) else []:
            self.carousel("down", "-p", name, "--timeout", "10")

    def carousel(self, *words, **options):
        return subprocess.run([CAROUSEL, *words], text=True, timeout=60, check=False,
                              **{"capture_output": True, "cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL, **options})

    def up(self, *more, file="demo.toml"):
        path = file if os.path.isabs(file) else os.path.join(PIPELINES, file)
        result = self.carousel("up", path, "-d", "--name", self.name, *SMALL, *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def ps(self):
        return json.loads(self.carousel("ps", "-p", self.name, "--json").stdout)

    def stage(self, name):
        return next(s for s in self.ps()["stages"] if s["name"] == name)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def talking_pipeline(self, script):
        """The demo, whose fragment stage is a shell script that runs `script` and then becomes the real stage."""
        self.write("talker", '#!/bin/sh\ncase "$*" in *--describe*) ;; *) ' + script + ' ;; esac\nexec carousel-fragment "$@"\n', 0o755)
        with open(os.path.join(PIPELINES, "demo.toml"), encoding="utf-8") as f:
            return self.write("talking.toml", f.read().replace('run = "carousel-fragment"', 'run = "./talker"'))


def main():
    unittest.main(argv=[sys.argv[0], "-v"])


__all__ = ["ANSI", "CAROUSEL", "Live", "PIPELINES", "PROGRAMS", "SMALL", "is_alive", "main", "os", "signal", "subprocess", "time", "wait_for"]
