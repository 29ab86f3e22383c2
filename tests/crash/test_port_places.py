"""Programs that enter a run's ports from other places: a root of their own, a launcher. Usage: test_port_places.py BUILD"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = os.path.join(BUILD, "carousel-test-port-io")
PIPELINE = """[pipeline]
name = "places"
device = "cpu"
frames = 400
[[stage]]
name = "camera"
run = "port"
output = { value = "u64[512]" }
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""
# A mount and a pid namespace of its own, and where this user is not root a user namespace.
UNSHARE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--pid", "--fork", "--kill-child"]


def starts(*words):
    return shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0


class Case(unittest.TestCase):
    around = ()   # words before those of the supervisor

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        path, self.report = os.path.join(self.folder, "places.toml"), os.path.join(self.folder, "report.json")
        with open(path, "w", encoding="utf-8") as out:
            out.write(PIPELINE)
        self.log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.run_ = self.start(*self.around, os.path.join(BUILD, "carousel"), "run", path, "--no-color", "--report", self.report, out=self.log)
        self.at = os.path.join(self.folder, "carousel/places")
        until = time.monotonic() + 30
        while not os.path.exists(os.path.join(self.at, "control.sock")) and time.monotonic() < until:
            time.sleep(0.01)

    def start(self, *words, out=subprocess.PIPE):
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, text=True, env=self.environment)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout and process.stdout.close()))
        return process

    def text(self):
        with open(self.log.name, encoding="utf-8") as text:   # not by the descriptor that the supervisor writes to
            return text.read()[-3000:]

    def check_end(self, *programs):
        said = [each.communicate(timeout=60)[0] for each in programs]
        self.assertEqual(self.run_.wait(60), 0, self.text() + "".join(said))
        with open(self.report, encoding="utf-8") as text:
            report = json.load(text)
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [400, 0, 0, 0], self.text())
        self.assertEqual([each.returncode for each in programs], [0] * len(programs), said)


class Siblings(Case):
    """The supervisor in a pid namespace, the programs in others beside it: none knows a number of the other's."""
    around = UNSHARE if starts(*UNSHARE) else ()

    def test_programs_of_a_pid_namespace_beside_the_supervisors(self):
        if not self.around:
            self.skipTest("no pid namespace can be made here (unshare)")
        reads, dies, writes = (self.start(*UNSHARE, PROGRAM, what, self.at, port, "1000")
                               for what, port in (("read", "analysis"), ("write", "camera"), ("write", "camera")))
        self.assertEqual(reads.stdout.readline(), "frame 0\n")
        dies.kill()   # it, or the one that waits for its place: the other goes on
        self.check_end(reads, writes)


class Places(Case):
    def make_root(self):
        """The program, its libraries, and a place for the run's folder; nothing else: no /dev/shm, no /proc."""
        root = os.path.join(self.folder, "root")
        os.makedirs(os.path.join(root, "run"))
        needed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
        for file in {PROGRAM, *re.findall(r"(/\S+)", needed)}:
            to = root + (file if file != PROGRAM else "/program")
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(file, to)
        return root

    def test_a_root_that_has_nothing_of_the_machine_but_the_runs_folder(self):
        if not starts(*UNSHARE) or not starts(*UNSHARE, "chroot", "/"):
            self.skipTest("no namespace, or no root of its own, can be made here (unshare, chroot)")
        root = self.make_root()
        bound = f"mount --bind {self.at} {root}/run && exec chroot {root} /program \"$@\""
        reads, writes = (self.start(*UNSHARE, "/bin/sh", "-c", bound, "sh", what, "/run", port)
                         for what, port in (("read", "analysis"), ("write", "camera")))
        self.check_end(reads, writes)

    def test_two_programs_that_a_launcher_has_started_apart(self):
        for launcher in (("srun", "--overlap", "-n", "1"), ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1")):
            if starts(*launcher):
                break
        else:
            self.skipTest("neither srun nor mpirun starts a program here")
        self.check_end(*(self.start(*launcher, PROGRAM, what, "places", port)
                         for what, port in (("read", "analysis"), ("write", "camera"))))


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if len(result.skipped) == result.testsRun else 0)
