"""The web server without a run: which requests it answers, for which host names, and that slow clients can't
exclude others.
Usage: test_web_http.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import os
import socket
import sys
import time
import unittest

from web_rig import Rig

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CONNECTIONS = 64   # site::max_connections


class Requests(Rig):
    def setUp(self):
        super().setUp()
        self.dashboard = self.dashboard_of(self.start("carousel-web", "-p", "none", "--http", "0", "--http-host", "gpu7.example.org", "--http-host", "Short"))

    def raw(self, request):
        """Status and body of what a request, given as its bytes, gets."""
        with socket.create_connection(("127.0.0.1", self.dashboard.port), timeout=20) as s:
            s.sendall(request.replace(b"\n", b"\r\n"))
            answer = b""
            while part := s.recv(65536):
                answer += part
        heading, _, body = answer.partition(b"\r\n\r\n")
        return int(heading.split()[1]), body.decode()

    def test_a_request_needs_exactly_one_host_and_the_absolute_form_overrides_it(self):
        self.assertEqual(self.raw(b"GET /metrics HTTP/1.1\nConnection: close\n\n")[0], 400)
        self.assertEqual(self.raw(b"GET /metrics HTTP/1.1\nHost: localhost\nHost: localhost\nConnection: close\n\n")[0], 400)
        self.assertEqual(self.raw(b"GET /metrics HTTP/1.0\n\n")[0], 200)
        for target, host, status in ((b"http://127.0.0.1:80/status.json", b"evil.example", 200), (b"HTTP://localhost/status.json?x=1", b"localhost", 200),
                                     (b"http://evil.example/status.json", b"localhost", 403), (b"http://localhost", b"localhost", 200),
                                     (b"http:///status.json", b"localhost", 400), (b"status.json", b"localhost", 400)):
            self.assertEqual(self.raw(b"GET " + target + b" HTTP/1.1\nHost: " + host + b"\nConnection: close\n\n")[0], status, target)

    def test_metrics_and_health_are_open_to_any_host_and_the_rest_to_names_of_this_machine(self):
        for host, own in (("evil.example", False), ("gpu7.example.org:9100", True), ("GPU7.example.org", True), ("short", True), ("7.example.org", False)):
            headers = {"Host": host}
            self.assertEqual(self.dashboard.ask("/metrics", headers=headers)[0], 200, host)
            for probe in ("/healthz", "/readyz"):
                self.assertEqual(self.dashboard.ask(probe, headers=headers)[:2], (503, b'no pipeline "none" is running; waiting for it\n'), host)
            status, body, _ = self.dashboard.ask("/status.json", headers=headers)
            self.assertEqual(status, 200 if own else 403, host)
            if not own:
                self.assertIn(b"--http-host", body)

    def test_a_token_in_the_address_of_an_action_is_refused(self):
        path = "/stages/fragment/kill"
        for headers in ({}, {"X-Carousel-Token": self.dashboard.token}):
            status, body, _ = self.dashboard.ask(f"{path}?token={self.dashboard.token}", "POST", headers)
            self.assertEqual(status, 400)
            self.assertIn(b"X-Carousel-Token", body)
        for headers in ({"X-Carousel-Token": self.dashboard.token}, {"Authorization": "Bearer " + self.dashboard.token}):
            self.assertEqual(self.dashboard.ask(path, "POST", headers)[:2], (503, b"no pipeline is running\n"))

    def test_a_read_only_server_refuses_every_action_on_the_run(self):
        dashboard = self.dashboard_of(self.start("carousel", "view", "--read-only", "-p", "none", "--http", "0"))
        headers = {"X-Carousel-Token": dashboard.token}
        for path, body in (("/stages/fragment/kill", None), ("/stages/fragment/stop", None), ("/parameters", '{"ambient": 0.5}'), ("/parameters/reset", None)):
            status, text, _ = dashboard.ask(path, "POST", headers, body=body)
            self.assertEqual((status, b"read-only (--read-only): no command is sent to the run" in text), (403, True), text)
        self.assertEqual(dashboard.ask("/picture", "POST", headers, body='{"range": "extremes"}')[0], 200)   # changes no run
        self.assertTrue(dashboard.json()["read_only"])
        self.assertFalse(self.dashboard.json()["read_only"])   # the control: another server sends the action
        self.assertEqual(self.dashboard.ask("/stages/fragment/kill", "POST", {"X-Carousel-Token": self.dashboard.token})[0], 503)

    def test_clients_that_never_finish_their_request_give_way_to_others(self):
        slow = []
        for _ in range(CONNECTIONS + 8):
            s = socket.create_connection(("127.0.0.1", self.dashboard.port), timeout=20)
            self.addCleanup(s.close)
            s.sendall(b"GET /metrics HTTP/1.1\r\n")
            slow.append(s)
        began = time.monotonic()
        for _ in range(20):
            self.assertEqual(self.dashboard.ask("/metrics")[0], 200)
        self.assertLess(time.monotonic() - began, 10)   # their requests would only expire after 15 s
        self.assertEqual(slow[0].recv(100), b"")        # the oldest one was closed
        slow[-1].sendall(b"Host: localhost\r\n\r\n")
        self.assertTrue(slow[-1].recv(100).startswith(b"HTTP/1.1 200"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
