"""The common parts of the tests of the web page: a pipeline on the CPU with its page, and requests to it."""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, wait_for  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Dashboard:
    """An address with a token, as it was printed."""

    def __init__(self, port, token):
        self.port, self.token = int(port), token

    def ask(self, path, method="GET", headers=None, timeout=20, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def json(self, path="/status.json"):
        status, body, _ = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def act(self, stage, verb, token=None):
        headers = {"X-Carousel-Token": self.token if token is None else token}
        status, body, _ = self.ask(f"/stages/{stage}/{verb}", "POST", headers)
        return status, body.decode()

    def choose(self, run, token=None):
        status, body, _ = self.ask(f"/runs/{run}/watch", "POST", {"X-Carousel-Token": self.token if token is None else token})
        return status, body.decode()

    def process(self, stage):
        return next((s["processes"][0] for s in self.json()["stages"] if s["name"] == stage), {})

    def frames(self):
        return (self.json()["pipeline"] or {}).get("frames", 0)   # a page that has just begun has not looked yet


class Rig(unittest.TestCase):
    programs = pipelines = None   # set by the test that is run

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-web-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "CAROUSEL_LOG": "warning"}
        self.logs = {}

    def start(self, *words):
        path = os.path.join(self.folder, f"log-{len(self.logs)}.txt")
        with open(path, "wb") as log:
            process = subprocess.Popen([os.path.join(self.programs, words[0]), *words[1:]], env=self.environment, cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.logs[process.pid] = path
        self.addCleanup(end_process, process)
        return process

    def log(self, process):
        with open(self.logs[process.pid], encoding="utf-8", errors="replace") as f:
            return f.read()

    def start_run(self, *more, size="320x180", fps="30", name="demo"):
        return self.start("carousel", "run", os.path.join(self.pipelines, "demo.toml"), "--device", "cpu", "--size", size, "--name", name,
                          "--set", "geometry.triangles=2000", "--fps", fps, "--out", "", "--no-color", *more)

    def dashboard_of(self, process, nth=0):
        """The page whose address that process has printed."""
        def printed():
            found = re.findall(r"http://[\d.]+:(\d+)/\?token=([0-9a-f]{32})", self.log(process))
            if process.poll() is not None:
                raise AssertionError("it has ended:\n" + self.log(process))
            return Dashboard(*found[nth]) if len(found) > nth else None
        return wait_for("a printed address", printed)

    def dashboard_pid(self, run):
        """The process that serves the page, as a child of the run's supervisor; None without one."""
        children = subprocess.run(["ps", "--ppid", str(run.pid), "-o", "pid=,comm="], capture_output=True, text=True, check=False).stdout
        return next((int(line.split()[0]) for line in children.splitlines() if "carousel-web" in line), None)

    @staticmethod
    def answers(dashboard):
        try:
            return dashboard.ask("/status.json")[0] == 200
        except OSError:
            return False

    def running_dashboard(self, *more, **options):
        run = self.start_run("--http", "0", *more, **options)
        dashboard = self.dashboard_of(run)
        wait_for("frames", lambda: dashboard.json()["phase"] == "running" and dashboard.frames() > 5)
        return run, dashboard
