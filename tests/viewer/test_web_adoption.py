"""Web UI and metrics while supervisors die and runs end: a real pipeline on the CPU.
Usage: test_web_adoption.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [class]"""
import mmap
import os
import re
import signal
import socket
import struct
import sys
import unittest

from web_rig import Rig, wait_for
from processes import is_alive  # web_rig has made it findable

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class MetricsRig(Rig):
    def metric(self, dashboard, name):
        found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", dashboard.ask("/metrics")[1].decode(), re.M)
        return float(found[1]) if found else None


class Adopted(MetricsRig):
    def test_the_page_continues_without_a_supervisor_and_the_next_one_keeps_its_process_and_token(self):
        grace = ("--http", "0", "--set", "supervisor_grace_s=60")
        run, dashboard = self.running_dashboard(*grace)
        web = self.dashboard_pid(run)
        with socket.create_connection(("127.0.0.1", dashboard.port), timeout=20) as stream:
            stream.sendall(b"GET /stream.mjpg?viewer=me HTTP/1.1\r\nHost: localhost\r\n\r\n")
            run.kill()
            run.wait()
            wait_for("the news", lambda: dashboard.json()["pipeline"]["state"] == "unsupervised")
            self.assertEqual((self.metric(dashboard, "carousel_up"), self.metric(dashboard, "carousel_supervisor_up")), (1, 0))
            self.assertEqual(dashboard.ask("/healthz")[:2], (503, b"no supervisor, 4 stages continue\n"))
            before = dashboard.frames()
            wait_for("frames without a supervisor", lambda: dashboard.frames() > before + 10)
            run = self.start_run(*grace)
            wait_for("the adoption", lambda: dashboard.json()["pipeline"]["supervisor_pid"] == run.pid and dashboard.json()["pipeline"]["state"] == "running")
            self.assertEqual(self.metric(dashboard, "carousel_supervisor_up"), 1)
            self.assertEqual(dashboard.ask("/healthz")[:2], (200, b"ok\n"))
            self.assertTrue(dashboard.json("/status.json?viewer=me")["picture"]["stream_open"])   # the same connection
            self.assertFalse(dashboard.json("/status.json?viewer=other")["picture"]["stream_open"])
        again = self.dashboard_of(run)
        self.assertEqual((again.port, again.token), (dashboard.port, dashboard.token))
        self.assertTrue(is_alive(web))
        old = dashboard.process("vertex")["pid"]
        self.assertEqual(dashboard.act("vertex", "kill")[0], 200)   # with the token of before
        wait_for("its successor", lambda: dashboard.process("vertex")["pid"] not in (None, old))
        os.kill(web, signal.SIGKILL)   # a page that another supervisor started is replaced as any
        wait_for("another page at the same place", lambda: self.answers(dashboard))
        self.assertEqual(dashboard.act("fragment", "stop")[0], 200)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 0, self.log(run))
        self.assertFalse(self.answers(dashboard))

    def test_a_page_without_a_supervisor_ends_with_its_run(self):
        run, dashboard = self.running_dashboard("--set", "supervisor_grace_s=60")
        web = self.dashboard_pid(run)
        stages = [p["pid"] for s in dashboard.json()["stages"] for p in s["processes"]]
        run.kill()
        run.wait()
        for pid in stages:
            os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: not is_alive(web))


class Abandoned(MetricsRig):
    def test_a_web_ui_that_dies_four_times_in_a_row_is_abandoned_and_the_run_continues(self):
        run, dashboard = self.running_dashboard()
        for k in range(4):
            os.kill(wait_for("the web UI", lambda: self.dashboard_pid(run)), signal.SIGKILL)
            if k < 3:
                self.dashboard_of(run, k + 1)
        wait_for("the message", lambda: "for the 4th time in a row within a minute of its start, and is not started again" in self.log(run))
        self.assertEqual(self.log(run).count("it is restarted, and the pipeline continues"), 3)
        view = self.start("carousel", "view", "-p", "demo", "--http", "0")   # as the message proposes
        other = self.dashboard_of(view)
        before = wait_for("frames", lambda: other.frames())
        wait_for("frames after it", lambda: other.frames() > before)
        self.assertIsNone(self.dashboard_pid(run))


def end_word(number):
    """The word that holds the end of a run (shm/number_word.hpp)."""
    return struct.pack("<Q", number | number.bit_count() % 2 << 63)


class Rebuilt(MetricsRig):
    """Counters while the control block is rebuilt."""
    FRAMES = 987654321

    def counters(self, dashboard):
        text = dashboard.ask("/metrics")[1].decode()
        counted = {name for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M) if kind in ("counter", "histogram")}
        series = re.findall(r"^(([^\s{]+){[^}]*}) (\S+)$", text, re.M)
        return {key: float(value) for key, name, value in series if re.sub("_(bucket|sum|count)$", "", name) in counted or name in counted}

    def damage_block(self, dashboard):
        with open(f"/dev/shm/carousel-{dashboard.json()['pipeline']['run_id']}", "r+b") as f, mmap.mmap(f.fileno(), 0) as block:
            at = next(k for k in range(0, len(block), 64) if block[k:k + 8] == end_word(self.FRAMES))
            block[at:at + 8] = end_word(2 * self.FRAMES)

    def test_no_counter_decreases_by_a_rebuild_of_the_control_block(self):
        run = self.start_run("--http", "0", "--frames", str(self.FRAMES))
        dashboard = self.dashboard_of(run)
        cpu = 'carousel_stage_cpu_seconds_total{pipeline="demo",stage="%s",stage_instance="0"}'
        stages = ("geometry", "vertex", "fragment", "display")
        for rebuilds in (1, 2):
            wait_for("CPU time", lambda: all(self.counters(dashboard).get(cpu % s, 0) > 0 for s in stages))
            before = self.counters(dashboard)
            self.assertGreater(len(before), 50)
            self.damage_block(dashboard)
            wait_for("the rebuild", lambda n=rebuilds: self.metric(dashboard, "carousel_rebuilds_total") == n)
            wait_for("its frames", lambda: dashboard.json()["pipeline"]["state"] == "running")
            after = self.counters(dashboard)
            self.assertEqual({key: (value, after.get(key)) for key, value in before.items() if after.get(key, -1) < value}, {})
        self.assertIn("the control block is damaged (the run: end", self.log(run))


class Next(MetricsRig):
    def test_a_view_follows_the_next_run_of_the_same_name(self):
        view = self.start("carousel", "view", "-p", "demo", "--http", "0")
        dashboard = self.dashboard_of(view)
        self.assertEqual((self.metric(dashboard, "carousel_up"), self.metric(dashboard, "carousel_frames_total")), (0, None))
        for _ in range(2):
            run = self.start_run()
            wait_for("the run", lambda: self.metric(dashboard, "carousel_up") == 1)
            self.assertEqual(dashboard.json()["pipeline"]["supervisor_pid"], run.pid)
            wait_for("frames", lambda: dashboard.frames() > 5)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(30), 0, self.log(run))
            wait_for("its end", lambda: self.metric(dashboard, "carousel_up") == 0)
            self.assertIn("demo has ended: exit code 0", dashboard.json()["notice"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
