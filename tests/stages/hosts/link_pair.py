"""Two runs with a link between them, each with a supervisor of its own: on loopback, or in two network namespaces."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import shutil
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import end_process, is_alive, skip, wait_for  # noqa: E402

SOURCE = '[pipeline]\nname = "{name}"\n\n[[stage]]\nname = "source"\nrun = "carousel-test-bytes"\nbytes = {bytes}\n{more}'
SINK = '\n[[stage]]\nname = "sink"\nrun = "carousel-test-bytes"\ninputs = ["{of}"]\nbytes = {bytes}\ndelay_ms = {delay}\n{more}'
SEND = '\n[[stage]]\nname = "send"\nrun = "carousel-send"\ninputs = ["{of}"]\nin_flight = {in_flight}\n'
RECEIVE = '[pipeline]\nname = "{name}"\n\n[[stage]]\nname = "receive"\nrun = "carousel-receive"\nin_flight = {in_flight}\nformat = \'{format}\'\n'
END = 'address = "{address}"\nport = {port}\ntoken = "{token}"\n'


def format_of(size):
    return json.dumps({"type": "test.bytes", "constants": {}, "planes": [{"name": "data", "element": "u8", "shape": [size]}]})


class Host:
    """One run. It may be killed and started again; what it printed is kept."""

    def __init__(self, pair, name, text, options=(), inside=()):
        self.pair, self.name, self.inside = pair, name, list(inside)
        self.file = os.path.join(pair.folder, name + ".toml")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(text)
        self.report_file = os.path.join(pair.folder, name + ".json")
        self.log = os.path.join(pair.folder, name + ".log")
        self.options, self.process, self.device = list(options), None, "cpu"

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*self.inside, self.pair.carousel, "run", self.file, "--device", self.device, "--no-color", "--report", self.report_file,
                 *self.options],
                env=self.pair.environment, cwd=self.pair.folder, stdout=log, stderr=log)
        return self

    def ps(self):
        out = subprocess.run([self.pair.carousel, "ps", "-p", self.name, "--json"], env=self.pair.environment, capture_output=True,
                             timeout=30, check=False).stdout
        try:
            return json.loads(out or "{}")
        except json.JSONDecodeError:
            return {}

    def stage(self, name):
        return next((s for s in self.ps().get("stages") or [] if s["name"] == name), {})

    def kill(self, name):
        """SIGKILL to a stage's process, if it has one now."""
        pid = self.stage(name).get("pid")
        if not pid:
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def kill_supervisor(self):
        """SIGKILL; the next one takes the run over."""
        if self.process.poll() is not None:
            return False
        self.process.kill()
        self.process.wait()
        self.start()
        return True

    def end(self):
        """At once: the first Ctrl-C delivers what is begun, the second one doesn't."""
        for _ in range(2):
            if self.process and self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                time.sleep(0.1)
        if self.process:
            end_process(self.process)

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def report(self):
        with open(self.report_file, encoding="utf-8") as f:
            return json.load(f)

    def wait(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {seconds} s:\n{self.text()[-3000:]}") from None


class Pair:
    def __init__(self, programs, size=1 << 20, address="127.0.0.1", port=47100, inside_a=(), inside_b=(), options_a=(), delay_ms=0,
                 light=False, in_flight=4):
        self.carousel = os.path.join(os.path.abspath(programs), "carousel")
        self.folder = tempfile.mkdtemp(prefix="carousel-link-")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        self.token = self.make_token("link.token")
        self.size = size
        where = {"address": address, "port": port, "token": "link.token", "more": "light = true\n" if light else "", "in_flight": in_flight}
        self.a = Host(self, "a", (SOURCE + SEND + END).format(name="a", bytes=size, of="source", **where), options_a, inside_a)
        self.b = Host(self, "b", (RECEIVE + END + SINK).format(name="b", bytes=size, of="receive", delay=delay_ms, format=format_of(size), **where),
                      inside=inside_b)

    def make_token(self, name, text=None):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text or os.urandom(32).hex())
        return path

    def hash_on_one_host(self, frames):
        one = Host(self, "one", (SOURCE + SINK).format(name="one", bytes=self.size, of="source", delay=0, more=""), ["--frames", str(frames)]).start()
        assert one.wait(120) == 0, one.text()
        return one.report()["image_hash"]

    def end(self):
        for host in (self.a, self.b):
            host.end()
        shutil.rmtree(self.folder, True)


def check_whole(pair, frames):
    """Nothing lost, repeated or torn on either side, and the hash of a run on one host."""
    for host in (pair.a, pair.b):
        r = host.report()
        for key in ("lost", "repeated", "torn"):
            assert r[key] == 0, f"{host.name}: {key} = {r[key]}\n{host.text()[-3000:]}"
        assert r["frames"] == frames, f"{host.name}: {r['frames']} of {frames} frames\n{host.text()[-3000:]}"
    return pair.b.report()["image_hash"]
