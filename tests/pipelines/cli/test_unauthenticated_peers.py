"""A process of another user and a running pipeline: it can't attach, command, read frames or signal a stage; and it does no harm.
Usage: test_unauthenticated_peers.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER. Only root can become another user; for others it is skipped."""
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import skip  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NOBODY = 65534


def as_nobody(work):
    """Runs work() in a child of another user; its result is returned, an exception fails the test."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = {"said": work()}
        except BaseException:  # reported to the parent, which fails
            answer = {"raised": traceback.format_exc()}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        answer = json.loads(f.read())
    os.waitpid(pid, 0)
    if "raised" in answer:
        raise AssertionError(answer["raised"])
    return answer["said"]


def refusal(work):
    """The name of the error that work() ends with; "none" when it succeeds."""
    try:
        work()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
    return "none"


class UnauthenticatedPeers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-strangers-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.chmod(self.folder, 0o755)  # as a careless administrator would
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "CAROUSEL_LOG": "warning"}
        self.run_ = subprocess.Popen([os.path.join(PROGRAMS, "carousel"), "run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu", "--size",
                                      "64x36", "--set", "geometry.triangles=200", "--fps", "100", "--out", "", "--no-color", "--name", "victim",
                                      "--report", os.path.join(self.folder, "report.json")], env=self.environment, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)
        until = time.monotonic() + 30
        while not (stages := self.ps().get("stages")) or any(s["state"] != "running" or s["frames"] < 5 for s in stages):
            self.assertLess(time.monotonic(), until, "the pipeline does not run within 30 s")
            time.sleep(0.05)
        self.socket = os.path.join(self.folder, "carousel", "victim", "control.sock")

    def end(self):
        if self.run_.poll() is None:
            self.run_.send_signal(signal.SIGINT)
            self.run_.wait(30)

    def ps(self):
        out = subprocess.run([os.path.join(PROGRAMS, "carousel"), "ps", "--json"], env=self.environment, capture_output=True, timeout=20)
        try:
            return json.loads(out.stdout)
        except ValueError:
            return {}

    def test_another_user_can_neither_see_nor_change_a_run(self):
        ps = self.ps()
        pids = [s["pid"] for s in ps["stages"]] + [ps["pipeline"]["pid"]]
        run_id = ps["pipeline"]["run_id"]
        subprocess.run([os.path.join(PROGRAMS, "carousel"), "trace", os.path.join(self.folder, "t.json"), "--seconds", "0.2"],
                       env=self.environment, check=True, stdout=subprocess.DEVNULL, timeout=30)
        control, trace = "/dev/shm/carousel-" + run_id, "/dev/shm/carousel-" + run_id + ".trace"
        self.assertTrue(os.path.exists(control) and os.path.exists(trace))

        def connect():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.connect(self.socket)

        def work():
            output = {"connect": refusal(connect), "folder": refusal(lambda: os.listdir(os.path.dirname(self.socket)))}
            for name, path in (("control block", control), ("trace", trace)):
                output[name] = [refusal(lambda p=path, m=mode: open(p, m).close()) for mode in ("rb", "r+b")]
                output[name].append(refusal(lambda p=path: os.unlink(p)))
            output["signals"] = [refusal(lambda p=pid, n=number: os.kill(p, n)) for pid in pids for number in (0, signal.SIGSTOP, signal.SIGKILL)]
            output["fds"] = [refusal(lambda p=pid: os.listdir(f"/proc/{p}/fd")) for pid in pids]
            output["memory"] = [refusal(lambda p=pid: open(f"/proc/{p}/mem", "rb").close()) for pid in pids]
            return output

        output = as_nobody(work)
        self.assertEqual(output["connect"], "EACCES")
        self.assertEqual(output["folder"], "EACCES")
        self.assertEqual(output["control block"][:2], ["EACCES", "EACCES"])
        self.assertEqual(output["trace"][:2], ["EACCES", "EACCES"])
        self.assertIn(output["control block"][2], ("EPERM", "EACCES"))
        self.assertEqual(set(output["signals"]), {"EPERM"})
        self.assertEqual(set(output["fds"]) | set(output["memory"]), {"EACCES"})
        self.still_well(ps)

    def test_another_user_with_access_to_the_folders_is_dropped_by_his_credentials(self):
        ps = self.ps()
        for path, mode in ((os.path.join(self.folder, "carousel"), 0o755), (os.path.dirname(self.socket), 0o755), (self.socket, 0o666)):
            os.chmod(path, mode)

        def work():
            output = []
            for text in ('{"type":"ps"}', '{"type":"kill","stage":"fragment"}', '{"type":"hello","stage":"fragment"}', '{"type":"tap"}', "x" * 100_000):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s, open("/dev/null", "rb") as null:
                    s.settimeout(5)
                    s.connect(self.socket)
                    try:
                        socket.send_fds(s, [text.encode()], [null.fileno()] * 3)
                        answer, fds, _, _ = socket.recv_fds(s, 65536, 16)
                        output.append([answer.decode(), len(fds)])
                    except (BrokenPipeError, ConnectionResetError):
                        output.append(["", 0])  # closed before it could send a message
            for _ in range(400):  # nor do many of them crowd others out
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.settimeout(2)
                try:
                    s.connect(self.socket)
                except OSError:
                    pass
                kept.append(s)
            return output

        kept = []
        files_before = len(os.listdir(f"/proc/{self.run_.pid}/fd"))
        self.assertEqual(as_nobody(work), [["", 0]] * 5)
        self.still_well(ps)
        self.assertLessEqual(len(os.listdir(f"/proc/{self.run_.pid}/fd")), files_before + 1, "no descriptor of a stranger is kept")

    def still_well(self, before):
        now = self.ps()
        self.assertEqual([(s["pid"], s["restarts"]) for s in now["stages"]], [(s["pid"], s["restarts"]) for s in before["stages"]])
        frames = now["pipeline"]["frames"]
        time.sleep(0.3)
        self.assertGreater(self.ps()["pipeline"]["frames"], frames, "frames flow on")


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("only root can become another user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
