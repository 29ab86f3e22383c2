"""Web UI and metrics while supervisors die and runs end: a real pipeline on the CPU.
Usage: test_web_adoption.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [class]"""
import os
import re
import signal
import socket
import sys
import unittest

from web_rig import Rig, wait_for
from processes import is_alive  # web_rig has made it findable

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class MetricsRig(Rig):
    def metric(self, page, name):
        found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", page.ask("/metrics")[1].decode(), re.M)
        return float(found[1]) if found else None


class Adopted(MetricsRig):
    def test_the_page_continues_without_a_supervisor_and_the_next_one_keeps_its_process_and_token(self):
        grace = ("--http", "0", "--set", "supervisor_grace_s=60")
        run, page = self.running_page(*grace)
        web = self.page_pid(run)
        with socket.create_connection(("127.0.0.1", page.port), timeout=20) as stream:
            stream.sendall(b"GET /stream.mjpg?viewer=me HTTP/1.1\r\nHost: localhost\r\n\r\n")
            run.kill()
            run.wait()
            wait_for("the news", lambda: page.json()["pipeline"]["state"] == "unsupervised")
            self.assertEqual((self.metric(page, "carousel_up"), self.metric(page, "carousel_supervisor_up")), (1, 0))
            self.assertEqual(page.ask("/healthz")[:2], (503, b"supervisor gone, 4 stages go on\n"))
            before = page.frames()
            wait_for("frames without a supervisor", lambda: page.frames() > before + 10)
            run = self.start_run(*grace)
            wait_for("the adoption", lambda: page.json()["pipeline"]["supervisor_pid"] == run.pid and page.json()["pipeline"]["state"] == "running")
            self.assertEqual(self.metric(page, "carousel_supervisor_up"), 1)
            self.assertEqual(page.ask("/healthz")[:2], (200, b"ok\n"))
            self.assertTrue(page.json("/status.json?viewer=me")["picture"]["stream_open"])   # the same connection
            self.assertFalse(page.json("/status.json?viewer=other")["picture"]["stream_open"])
        again = self.page_of(run)
        self.assertEqual((again.port, again.token), (page.port, page.token))
        self.assertTrue(is_alive(web))
        old = page.process("vertex")["pid"]
        self.assertEqual(page.act("vertex", "kill")[0], 200)   # with the token of before
        wait_for("its successor", lambda: page.process("vertex")["pid"] not in (None, old))
        os.kill(web, signal.SIGKILL)   # a page that another supervisor started is replaced as any
        wait_for("another page at the same place", lambda: self.answers(page))
        self.assertEqual(page.act("fragment", "stop")[0], 200)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 0, self.log(run))
        self.assertFalse(self.answers(page))

    def test_a_page_without_a_supervisor_ends_with_its_run(self):
        run, page = self.running_page("--set", "supervisor_grace_s=60")
        web = self.page_pid(run)
        stages = [p["pid"] for s in page.json()["stages"] for p in s["processes"]]
        run.kill()
        run.wait()
        for pid in stages:
            os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: not is_alive(web))


class Next(MetricsRig):
    def test_a_view_follows_the_next_run_of_the_same_name(self):
        view = self.start("carousel", "view", "-p", "demo", "--http", "0")
        page = self.page_of(view)
        self.assertEqual((self.metric(page, "carousel_up"), self.metric(page, "carousel_frames_total")), (0, None))
        for _ in range(2):
            run = self.start_run()
            wait_for("the run", lambda: self.metric(page, "carousel_up") == 1)
            self.assertEqual(page.json()["pipeline"]["supervisor_pid"], run.pid)
            wait_for("frames", lambda: page.frames() > 5)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(30), 0, self.log(run))
            wait_for("its end", lambda: self.metric(page, "carousel_up") == 0)
            self.assertIn("demo has ended: exit code 0", page.json()["notice"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
