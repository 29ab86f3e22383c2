"""Programs that enter a run's ports from other places: a separate root, a launcher. Usage: test_port_places.py BUILD [TEST...]"""
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

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = os.path.join(BUILD, "carousel-test-port-io")
PIPELINE = """[pipeline]
name = "places"
device = "cpu"
frames = 400
{keys}[[stage]]
name = "camera"
run = "port"
output = {{ value = "u64[512]" }}
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""
# A namespace of each kind except time.
UNSHARE = ["unshare", "--map-root-user", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child"]


def starts(*words):
    return shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0


class Case(unittest.TestCase):
    around = ()   # command line before that of the supervisor
    keys = ""     # of the pipeline
    options = ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        path, self.report = os.path.join(self.folder, "places.toml"), os.path.join(self.folder, "report.json")
        with open(path, "w", encoding="utf-8") as out:
            out.write(PIPELINE.format(keys=self.keys))
        self.log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.run_ = self.start(*self.around, os.path.join(BUILD, "carousel"), "run", path, *self.options, "--no-color", "--report", self.report, out=self.log)
        self.at = os.path.join(self.folder, "carousel/places")
        until = time.monotonic() + 30
        while not os.path.exists(os.path.join(self.at, "control.sock")) and time.monotonic() < until:
            time.sleep(0.01)

    def start(self, *words, out=subprocess.PIPE):
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, text=True, env=self.environment)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout and process.stdout.close()))
        return process

    def text(self):
        with open(self.log.name, encoding="utf-8") as text:   # not through the descriptor that the supervisor writes to
            return text.read()[-3000:]

    def check_end(self, *programs):
        output = [each.communicate(timeout=60)[0] for each in programs]
        self.assertEqual([each.returncode for each in programs], [0] * len(programs), output)   # a run waits for a program that failed to enter
        self.assertEqual(self.run_.wait(60), 0, self.text() + "".join(output))
        with open(self.report, encoding="utf-8") as text:
            report = json.load(text)
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [400, 0, 0, 0], self.text())


class Siblings(Case):
    """The supervisor in a pid namespace, the programs in sibling namespaces: none knows a pid of another one."""
    around = UNSHARE if starts(*UNSHARE) else ()

    def test_programs_of_another_pid_namespace_than_the_supervisors(self):
        if not self.around:
            self.skipTest("no pid namespace can be made here (unshare)")
        reads, dies, writes = (self.start(*UNSHARE, PROGRAM, what, self.at, port, "1000")
                               for what, port in (("read", "analysis"), ("write", "camera"), ("write", "camera")))
        self.assertEqual(reads.stdout.readline(), "frame 0\n")
        dies.kill()   # this one, or the one that waits for its port: the other continues
        self.check_end(reads, writes)


class Fenced(Case):
    """The same places, and a program that the run can poll but not kill: it is fenced, and continues to run."""
    around = Siblings.around
    keys = "frame_timeout_ms = 400\n"

    def setUp(self):
        if not self.around:
            self.skipTest("no pid namespace can be made here (unshare)")
        super().setUp()

    def start_sibling(self, what, *words):
        return self.start(*UNSHARE, PROGRAM, what, self.at, "analysis" if what == "read" else "camera", *map(str, words))

    def holder(self, what, frame=20):
        """A program that has printed that it holds this frame, for longer than its deadline; its pid here."""
        program = self.start_sibling(what, 1000, frame, 2500)
        for line in iter(program.stdout.readline, ""):
            if line.startswith("holds "):
                with open(f"/proc/{program.pid}/task/{program.pid}/children", encoding="utf-8") as children:
                    return program, int(children.read())
        self.fail("it never held a frame: " + self.text())

    def wait_for(self, line):
        until = time.monotonic() + 20
        while line not in self.text() and time.monotonic() < until:
            time.sleep(0.02)
        self.assertIn(line, self.text())

    def problems(self):
        """What `carousel ps` of the supervisor's own namespace reports about retained buffers."""
        with open(f"/proc/{self.run_.pid}/task/{self.run_.pid}/children", encoding="utf-8") as children:
            enter = ["nsenter", "--target", children.read().split()[0], "--user", "--mount", "--pid"]
        output = subprocess.run([*enter, os.path.join(BUILD, "carousel"), "ps", "--json", "-p", "places"], env=self.environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(output.returncode, 0, output.stdout + output.stderr)
        return [text for text in re.findall(r"[^\n]*quarantine[^\n]*", output.stdout) if "stay in quarantine" in text]

    def check_fenced(self, pid, why):
        self.wait_for(why + ": its seat now belongs to another process")
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:   # it has not been killed
            self.assertNotIn(stat.read().rsplit(")", 1)[1].split()[0], "ZX")
        self.assertNotIn("SIGKILL", self.text())

    def test_a_writer_that_keeps_its_frame_is_fenced_notified_and_never_killed(self):
        reads = self.start_sibling("read")
        keeps, pid = self.holder("write")
        writes = self.start_sibling("write", 10000)
        self.assertEqual(writes.stdout.readline(), "frame 20\n")   # the number that was not committed
        self.check_fenced(pid, "process() of a frame takes longer than frame_timeout_ms = 400")
        self.assertRegex(keeps.stdout.readline(), "^revoked 20: .*given to another incarnation")
        self.check_end(reads, keeps, writes)

    def test_a_stopped_reader_is_fenced_and_continues_late_without_harm(self):
        writes = self.start_sibling("write", 5000)
        keeps, pid = self.holder("read")
        os.kill(pid, signal.SIGSTOP)
        reads = self.start_sibling("read")
        self.assertEqual(reads.stdout.readline(), "frame 20\n")   # what was not committed is delivered once more
        self.check_fenced(pid, "it does not respond while frames wait for it")
        os.kill(pid, signal.SIGCONT)
        self.assertRegex(keeps.stdout.readline(), "^revoked 20: .*given to another incarnation")
        self.check_end(reads, keeps, writes)

    def test_the_buffers_of_a_stopped_writer_are_kept_until_it_ends(self):
        reads = self.start_sibling("read")
        keeps, pid = self.holder("write")
        os.kill(pid, signal.SIGSTOP)
        writes = self.start_sibling("write", 10000)
        self.assertEqual(writes.stdout.readline(), "frame 20\n")
        self.check_fenced(pid, "it does not respond while frames wait for it")
        self.wait_for("the program at a port is not killed, and it still maps the ring); 1 of its buffers stay in quarantine until it ends")
        self.assertTrue(self.problems())
        os.kill(pid, signal.SIGKILL)
        keeps.wait(10)
        until = time.monotonic() + 10
        while self.problems() and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(self.problems(), [])   # it reported the buffer, which belongs to the ring again
        self.check_end(reads, writes)


class SmallRing(Fenced):
    """Buffers that are not returned are soon missed."""
    options = ("--set", "link.camera.window=1")
    test_a_writer_that_keeps_its_frame_is_fenced_notified_and_never_killed = None
    test_a_stopped_reader_is_fenced_and_continues_late_without_harm = None
    test_the_buffers_of_a_stopped_writer_are_kept_until_it_ends = None

    def test_more_writers_are_stopped_and_end_than_the_ring_has_buffers(self):
        reads = self.start_sibling("read")
        for frame in range(0, 24, 3):
            keeps, pid = self.holder("write", frame)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.5)   # past its deadline
            os.kill(pid, signal.SIGKILL)   # without it the fourth gets no frame: the ring's buffers are in quarantine
            keeps.wait(10)
        self.check_end(reads, self.start_sibling("write"))


class OtherClock(Case):
    """A program in another time namespace, whose time stamps the run can't compare with its own."""
    LATER = [*UNSHARE, "--time", "--monotonic", "100"]
    SAME = [*UNSHARE, "--time"]

    def setUp(self):
        if not starts(*self.LATER):
            self.skipTest("no time namespace can be made here (unshare --time)")
        super().setUp()

    def check_refused(self, *words):
        refused = self.start(*words)
        output = refused.communicate(timeout=30)[0]
        self.assertNotEqual(refused.returncode, 0, output)
        self.assertIn("CLOCK_MONOTONIC is 100.", output)
        self.assertIn("another time namespace", output)

    def test_a_program_of_another_clock_is_refused_with_the_reason_and_the_port_stays_free(self):
        self.check_refused(*self.LATER, PROGRAM, "read", "places", "analysis", "1000")
        # The supervisor refuses it without a block that it can observe, and without /proc.
        alone = "mount -t tmpfs tmpfs /dev/shm && {}exec \"$@\""
        for hidden in ("", "mount -t tmpfs tmpfs /proc && "):
            self.check_refused(*self.LATER, "sh", "-c", alone.format(hidden), "sh", PROGRAM, "read", self.at, "analysis", "1000")
        # A time namespace without an offset has the same clock.
        self.check_end(self.start(*self.SAME, PROGRAM, "read", self.at, "analysis", "1000"),
                       self.start(*self.SAME, PROGRAM, "write", self.at, "camera", "1000"))


class Places(Case):
    def make_root(self):
        """The program, its libraries, and a folder for the run's runtime directory; nothing else: no /dev/shm, no /proc."""
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
        # If two mpirun of Open MPI 4.1 create one session folder at once, one may end ("File exists"): each has its own.
        self.check_end(*(self.start("env", "TMPDIR=" + tempfile.mkdtemp(dir=self.folder), *launcher, PROGRAM, what, "places", port)
                         for what, port in (("read", "analysis"), ("write", "camera"))))


if __name__ == "__main__":
    result = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if len(result.skipped) == result.testsRun else 0)
