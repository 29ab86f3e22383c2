"""Stages of one pipeline with different environments: the key `python`.

Usage: test_environments.py BUILD
"""
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
import venv

import interpreter

BUILD = os.path.abspath(sys.argv[1])
CAROUSEL = os.path.join(BUILD, "carousel")

PAINTS = """
import carousel, shades

@carousel.stage(output=carousel.image(), device="cpu")
def paints(frame, out):
    memoryview(out).cast("B")[0] = shades.VERSION
    frame.metadata["shades"] = shades.VERSION
"""

COMPARES = """
import sys
import carousel, shades

@carousel.stage(device="cpu")
def compares(frame, color, *, other: int, mine: int):
    found = (memoryview(color).cast("B")[0], frame.metadata["shades"], shades.VERSION)
    if found != (other, other, mine):
        raise ValueError(f"{found} in {sys.prefix}")
"""


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as text:
        return text.read().split("\0")[:-1]


class Environments(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.write("paints.py", PAINTS)
        self.write("compares.py", COMPARES)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def environment(self, name, version):
        """Makes a virtual environment that has that version of the package shades, without pip and without a network."""
        folder = os.path.join(self.folder, name)
        venv.create(folder, symlinks=True)
        self.write(f"{name}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/shades/__init__.py", f"VERSION = {version}\n")
        return folder

    def pipeline(self, reader, more="", second="fps = 100"):
        path = self.write("environments.toml", f'[pipeline]\nname = "environments-{os.getpid()}"\nsize = [8, 4]\ndevice = "cpu"\n{second}\n'
                          f'[[stage]]\nname = "paints"\nrun = "paints.py"\npython = "one"\n'
                          f'[[stage]]\nname = "reads"\nrun = "{reader}"\ninputs = ["paints"]\n{more}\n')
        return carousel.Pipeline(path)

    def pids(self, run):
        return {s["name"]: s["pid"] for s in run.ps()["stages"]}

    def wait_for_another(self, run, stage, pid):
        """Waits until another process of the stage runs, and returns its pid."""
        until = time.monotonic() + 60
        while True:
            now = next(s for s in run.ps()["stages"] if s["name"] == stage)
            if now["state"] == "running" and now["pid"] != pid:
                return now["pid"]
            self.assertLess(time.monotonic(), until, run.log_text(40))
            time.sleep(0.02)

    def test_two_environments_with_conflicting_packages_keep_them_after_kills_restarts_and_adoption(self):
        one, two = self.environment("one", 1), self.environment("two", 2)
        pipeline = self.pipeline("compares.py", f'python = "{two}/bin/python3"\nother = 1\nmine = 2')
        first = pipeline.start()
        wanted = {"paints": f"{one}/bin/python3", "reads": f"{two}/bin/python3"}
        now = self.pids(first)
        self.assertEqual({name: command_line(pid)[0] for name, pid in now.items()}, wanted)
        until = time.monotonic() + 60
        while (standby := next(s for s in first.ps()["stages"] if s["name"] == "reads"))["standby"] != "ready":
            self.assertLess(time.monotonic(), until, first.log_text(40))
            time.sleep(0.02)
        first.kill("reads")
        self.assertEqual(self.wait_for_another(first, "reads", now["reads"]), standby["standby_pid"])
        self.assertEqual(command_line(standby["standby_pid"])[0], wanted["reads"])
        first.restart("paints")
        after = self.wait_for_another(first, "paints", now["paints"])
        self.assertEqual(command_line(after)[0], wanted["paints"])
        os.kill(first.ps()["pipeline"]["pid"], signal.SIGKILL)
        first.wait(20)
        with pipeline.start() as second:   # adopts the run
            before = self.pids(second)
            self.assertEqual(before["paints"], after, first.log_text(40) + second.log_text(40))
            second.kill("paints")
            self.assertEqual(command_line(self.wait_for_another(second, "paints", after))[0], wanted["paints"])
            subprocess.run([CAROUSEL, "down", "-p", second.name], check=True, capture_output=True, timeout=60)
            self.assertEqual(second.wait(60), 0, second.log_text(40))
            report = second.report()
        self.assertEqual([report[key] for key in ("lost", "repeated", "torn")], [0, 0, 0])
        self.assertEqual(report["dead_letters"], [])

    def test_a_dead_letter_is_replayed_with_the_stage_s_interpreter(self):
        self.environment("one", 1)
        two = self.environment("two", 2)
        self.write("breaks.py", "import carousel, shades, sys\n@carousel.stage(device='cpu')\ndef breaks(frame, color):\n"
                   "    raise ValueError(f'shades {shades.VERSION} in {sys.prefix}')\n")
        run = self.pipeline("breaks.py", 'python = "two"\nmax_attempts = 1', "frames = 1").start()
        self.assertEqual(run.wait(60), 4, run.log_text(40))
        done = subprocess.run([CAROUSEL, "replay", "--dead-letter", "0", "-p", run.name], capture_output=True, text=True, timeout=60)
        self.assertIn(f"ValueError: shades 2 in {two}", done.stdout + done.stderr)
        shutil.rmtree(two)
        done = subprocess.run([CAROUSEL, "replay", "--dead-letter", "0", "-p", run.name], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"stage reads: its interpreter {two}/bin/python3 can't be started: No such file", done.stderr)

    def validate(self, carousel_program=CAROUSEL):
        done = subprocess.run([carousel_program, "validate", os.path.join(self.folder, "environments.toml")], capture_output=True, text=True,
                              timeout=60)
        return done.returncode, done.stderr

    def test_a_missing_package_names_the_interpreter_and_the_keys(self):
        one = self.environment("one", 1)
        venv.create(os.path.join(self.folder, "bare"), symlinks=True)
        self.pipeline("compares.py", 'python = "bare"\nother = 1\nmine = 2')
        code, text = self.validate()
        self.assertEqual(code, 2)
        self.assertIn('environments.toml:12:1: stage "reads": compares.py, line 3: ModuleNotFoundError: No module named \'shades\' for '
                      f"{os.path.dirname(one)}/bare/bin/python3; the stage's key python, or CAROUSEL_PYTHON, names another interpreter", text)

    def test_an_interpreter_of_another_version_is_refused_at_its_key_with_both_versions(self):
        self.environment("one", 1)
        self.pipeline("compares.py", 'python = "one"\nother = 1\nmine = 2')
        build = os.path.join(self.folder, "build")
        shutil.copytree(os.path.join(BUILD, "python"), f"{build}/python", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(CAROUSEL, build)
        for name in os.listdir(f"{build}/python/carousel"):
            if name.startswith("_carousel.cpython"):
                os.rename(f"{build}/python/carousel/{name}", f"{build}/python/carousel/_carousel.cpython-399-x86_64-linux-gnu.so")
        code, text = self.validate(f"{build}/carousel")
        self.assertEqual(code, 2)
        self.assertRegex(text, 'environments.toml:9:1: stage "paints": carousel was built for Python 3.99, but this interpreter '
                               rf"\({re.escape(self.folder)}/one/bin/python3\) is Python {re.escape(sys.version.split()[0])}: use an interpreter of "
                               "Python 3.99")

    def test_a_stage_of_another_environment_gets_the_package_carousel_of_a_wheel_but_none_of_its_neighbours(self):
        one = self.environment("one", 1)
        site = f"home/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"   # what a wheel installs
        self.write(f"{site}/shades/__init__.py", "VERSION = 7\n")
        shutil.copytree(os.path.join(BUILD, "python", "carousel"), os.path.join(self.folder, site, "carousel"))
        starter = os.path.join(self.folder, "home/lib/carousel/python/carousel_stage.py")
        os.makedirs(os.path.dirname(starter))
        shutil.copy(os.path.join(BUILD, "python", "carousel_stage.py"), starter)
        self.write("which.py", "import carousel, shades\nraise ImportError(f'shades {shades.VERSION}, {carousel.__file__}')\n")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run([f"{one}/bin/python3", starter, os.path.join(self.folder, "which.py"), "--describe"], input="{}", text=True,
                              env=environment, capture_output=True, timeout=60)
        message = json.loads(done.stdout)["error"]["message"]
        self.assertIn("shades 1, ", message)
        self.assertEqual(os.path.realpath(message.split(", ")[-1]), os.path.realpath(os.path.join(self.folder, site, "carousel/__init__.py")))


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
