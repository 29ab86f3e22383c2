"""A run as a service: what its supervisor reports to the service manager, to the journal and to probes.
Usage: test_service.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [class]"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from live import CAROUSEL, PIPELINES, SMALL, Live, is_alive, wait_for  # noqa: E402

DEMO = os.path.join(PIPELINES, "demo.toml")


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.messages = []   # (seconds, {name: value})

    def receive(self):
        while True:
            try:
                text = self.socket.recv(4096).decode()
            except BlockingIOError:
                return self.messages
            self.messages.append((time.monotonic(), dict(line.split("=", 1) for line in text.split("\n"))))

    def values(self, name):
        return [m[name] for _, m in self.receive() if name in m]

    def wait(self, name, value=None):
        """Waits for a message that has that name, and a value that the pattern matches."""
        def arrived():
            return next((m for _, m in self.receive() if name in m and re.search(value or "", m[name])), None)
        try:
            return wait_for(f"{name}={value or ''}", arrived)
        except AssertionError as e:
            raise AssertionError(f"{e}; received: {self.messages}") from e


class Rig(Live):
    def setUp(self):
        super().setUp()
        self.manager = Manager(self.folder)
        self.addCleanup(self.manager.socket.close)

    def start(self, *more, file=DEMO, **environment):
        run = subprocess.Popen([CAROUSEL, "run", file, "--name", self.name, *SMALL, *more], cwd=self.folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**self.environment, "NOTIFY_SOCKET": self.manager.path, **environment})
        self.addCleanup(self.kill, run)
        return run

    @staticmethod
    def kill(run):
        if run.poll() is None:
            run.kill()
            run.wait()
        run.stderr.close()

    def end(self, run):
        run.send_signal(signal.SIGTERM)
        output = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, output)
        return output


class Service(Rig):
    def test_readiness_state_rate_and_end_are_reported(self):
        run = self.start()
        ready = self.manager.wait("READY", "1")
        self.assertNotIn("MAINPID", ready)
        self.assertNotIn("EXTEND_TIMEOUT_USEC", ready)   # it would extend the watchdog's timeout as well
        self.assertTrue(all(s["state"] == "running" for s in self.ps()["stages"]))
        self.manager.wait("STATUS", r"^running, [1-9]\d*\.\d frames/s$")
        self.assertEqual(self.carousel("stop", "fragment", "-p", self.name).returncode, 0)
        self.manager.wait("STATUS", "^paused: fragment$")
        self.assertEqual(self.carousel("cont", "fragment", "-p", self.name).returncode, 0)
        self.end(run)
        self.manager.receive()
        self.assertEqual(self.manager.values("READY"), ["1"])
        self.assertEqual(self.manager.values("STOPPING"), ["1"])
        self.assertRegex(self.manager.values("STATUS")[-1], rf"^{self.name}: \d+ frames in .*; lost 0, ")
        self.assertTrue(self.manager.messages[0][1]["EXTEND_TIMEOUT_USEC"])

    def test_no_process_of_the_run_inherits_the_managers_socket(self):
        run = self.start()
        self.manager.wait("READY", "1")
        for stage in self.ps()["stages"]:
            with open(f"/proc/{stage['pid']}/environ", "rb") as f:
                self.assertNotIn(b"NOTIFY_SOCKET=", f.read())
        self.end(run)

    def test_the_watchdog_gets_a_sign_of_life_twice_per_period_and_none_from_a_stopped_supervisor(self):
        run = self.start(WATCHDOG_USEC="400000")
        self.manager.wait("READY", "1")
        begun, before = time.monotonic(), len(self.manager.values("WATCHDOG"))
        wait_for("ten signs of life", lambda: len(self.manager.values("WATCHDOG")) >= before + 10)
        count, seconds = len(self.manager.values("WATCHDOG")) - before, time.monotonic() - begun
        self.assertLessEqual(count, 2 + seconds / 0.2 * 1.2)   # a busy machine sends fewer
        os.kill(run.pid, signal.SIGSTOP)
        time.sleep(0.2)
        before = len(self.manager.values("WATCHDOG"))
        time.sleep(1)
        self.assertEqual(len(self.manager.values("WATCHDOG")), before)
        os.kill(run.pid, signal.SIGCONT)
        self.end(run)

    def test_a_restarted_supervisor_adopts_the_run_and_reports_itself_as_the_main_process(self):
        first = self.start("--set", "supervisor_grace_s=30")
        self.manager.wait("READY", "1")
        pids = {s["name"]: s["pid"] for s in self.ps()["stages"]}
        first.kill()
        first.communicate(timeout=60)
        self.assertTrue(all(map(is_alive, pids.values())))   # KillMode=process: the manager kills none of them
        second = self.start("--set", "supervisor_grace_s=30")
        self.assertEqual(self.manager.wait("MAINPID")["MAINPID"], str(second.pid))
        self.assertEqual({s["name"]: s["pid"] for s in self.ps()["stages"]}, pids)
        self.assertEqual(self.manager.values("READY"), ["1", "1"])
        self.assertIn("lost 0, repeated 0, torn 0", self.end(second))

    def test_a_run_that_ends_by_itself_is_ready_before_it_stops(self):
        run = self.start("--frames", "5")
        output = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, output)
        self.assertEqual(self.manager.values("READY"), ["1"])
        names = [name for _, m in self.manager.receive() for name in m]
        self.assertLess(names.index("READY"), names.index("STOPPING"))

    def test_an_abstract_socket_is_supported_and_a_missing_one_is_ignored(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("\0" + self.name)
            manager.settimeout(30)
            run = self.start("--frames", "5", NOTIFY_SOCKET="@" + self.name)
            self.assertIn(b"STATUS=", manager.recv(4096))
            self.assertEqual(run.communicate(timeout=60) and run.returncode, 0)
        run = self.start("--frames", "5", NOTIFY_SOCKET="/nowhere/notify")
        self.assertEqual(run.communicate(timeout=60) and run.returncode, 0)

    def test_quiet_prints_nothing_unless_the_run_fails(self):
        run = self.start("--frames", "5", "--quiet")
        self.assertEqual((run.communicate(timeout=60)[1], run.returncode), ("", 0))
        self.manager.receive()
        self.manager.messages.clear()
        run = self.start("--frames", "3000", "--quiet")
        self.manager.wait("READY", "1")
        run.send_signal(signal.SIGTERM)
        output = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 143)
        self.assertRegex(output, rf"^{self.name}: \d+ frames in ")

    def test_logs_as_json_have_the_level_of_each_line(self):
        run = self.start("--keep-logs")
        self.manager.wait("READY", "1")
        self.assertEqual(self.carousel("kill", "fragment", "-p", self.name).returncode, 0)
        self.end(run)
        lines = [json.loads(line) for line in self.carousel("logs", "-p", self.name, "--json").stdout.splitlines()]
        self.assertTrue(lines)
        for line in lines:
            begins = re.match("(error|warning): ", line["line"])
            self.assertEqual(line["level"], begins[1] if begins else "info", line)


class Probes(Rig):
    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path, headers={"Host": "10.0.0.7:8080" if path == "/readyz" else "probe.example"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def both(self):
        return self.ask("/healthz")[0], self.ask("/readyz")[0]

    def begin(self, *more, **options):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        return self.start("--http", str(self.port), *more, **options)

    def test_probes_follow_the_run_and_answer_while_its_supervisor_is_stopped(self):
        run = self.begin("--set", "supervisor_grace_s=30")
        self.manager.wait("READY", "1")
        wait_for("readiness", lambda: self.port_answers() and self.both() == (200, 200))
        self.assertEqual((self.ask("/healthz"), self.ask("/readyz")), ((200, "ok\n"), (200, "ok\n")))
        self.assertEqual(self.carousel("stop", "fragment", "-p", self.name).returncode, 0)
        wait_for("a run that waits", lambda: self.both() == (200, 503))
        self.assertIn("fragment", self.ask("/healthz")[1])
        self.assertIn("fragment", self.ask("/readyz")[1])
        self.assertEqual(self.carousel("cont", "fragment", "-p", self.name).returncode, 0)
        wait_for("readiness after the pause", lambda: self.both() == (200, 200))
        os.kill(run.pid, signal.SIGSTOP)
        wait_for("a supervisor that hangs", lambda: self.both() == (503, 503))
        self.assertRegex(self.ask("/healthz")[1], r"^the supervisor has sent no heartbeat for \d+ s$")
        os.kill(run.pid, signal.SIGCONT)
        wait_for("a supervisor that is back", lambda: self.both() == (200, 200))
        run.kill()
        run.communicate(timeout=60)
        wait_for("no supervisor", lambda: self.both() == (503, 503))
        run = self.start("--http", str(self.port), "--set", "supervisor_grace_s=30")
        wait_for("the adoption", lambda: self.both() == (200, 200))
        self.end(run)
        self.assertFalse(self.port_answers())

    def test_a_run_is_not_ready_before_its_first_frame(self):
        go = os.path.join(self.folder, "go")
        run = self.begin(file=self.talking_pipeline(f"while [ ! -e {go} ]; do sleep 0.1; done"))
        wait_for("the server", self.port_answers)
        wait_for("a run that starts", lambda: self.both() == (200, 503))
        self.assertEqual(self.ask("/readyz")[1], "no frame has reached every sink yet\n")
        self.manager.wait("STATUS", "^starting$")
        self.assertEqual(self.manager.values("READY"), [])
        with open(go, "w", encoding="utf-8"):
            pass
        wait_for("readiness", lambda: self.both() == (200, 200))
        self.assertEqual(self.manager.values("READY"), ["1"])
        self.end(run)

    def port_answers(self):
        try:
            return self.ask("/healthz") is not None
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
