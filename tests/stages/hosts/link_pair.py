"""Two runs with a link between them, each with its own supervisor: on loopback, or in two network namespaces."""
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import end_process, is_alive, wait_for  # noqa: E402

SOURCE = '[pipeline]\nname = "{name}"\n\n[[stage]]\nname = "source"\nrun = "carousel-test-bytes"\nbytes = {bytes}\n{more}'
SINK = '\n[[stage]]\nname = "sink"\nrun = "carousel-test-bytes"\ninputs = ["{of}"]\nbytes = {bytes}\ndelay_ms = {delay}\n{more}'
SEND = '\n[[stage]]\nname = "send"\nrun = "carousel-send"\ninputs = ["{of}"]\nin_flight = {in_flight}\n'
RECEIVE = '[pipeline]\nname = "{name}"\n\n[[stage]]\nname = "receive"\nrun = "carousel-receive"\nin_flight = {in_flight}\nformat = \'{format}\'\n'
END = 'address = "{address}"\nport = {port}\ntoken = "{token}"\n'


def format_of(size):
    return json.dumps({"type": "test.bytes", "constants": {}, "planes": [{"name": "data", "element": "u8", "shape": [size]}]})


class Host:
    """One run. It may be killed and started again; its output is kept."""

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
        """SIGKILL; the next one takes the run over. Returns False if it can't be killed now."""
        if not may_be_killed(self.process, self.ps()):
            return False
        self.process.kill()
        self.process.wait()
        self.start()
        return True

    def stop(self, how=signal.SIGSTOP):
        """Stops its supervisor."""
        if self.process.poll() is None:
            self.process.send_signal(how)

    def lose(self):
        """As if the machine had failed: all of its processes at the same time, its rings and its folder. Its
        sinks' files are elsewhere."""
        pids = [s["pid"] for s in self.ps().get("stages") or [] if s.get("pid")]
        return lose_run(self.process, os.path.join(self.pair.folder, "carousel", self.name), pids)

    def end(self):
        """Ends it at once: the first Ctrl-C delivers the begun frames, the second one doesn't."""
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


def may_be_killed(supervisor, ps):
    """False while none of its stages is alive, as on a busy machine a moment after all were killed: the rings' memory would be gone
    with the last process that has it."""
    return supervisor.poll() is None and any(is_alive(s["pid"]) for s in ps.get("stages") or [] if s.get("pid") and "/" not in s["name"])


def run_id_in(folder):
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as f:
        return json.load(f)["run_id"]


def lose_run(supervisor, folder, pids):
    """Ends the supervisor and the processes of its stages, and removes the run's runtime directory and rings. Returns what its sink had delivered."""
    run = run_id_in(folder)
    supervisor.kill()
    supervisor.wait()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_for("they are gone", lambda: not any(is_alive(pid) for pid in pids))
    delivered = ledger(os.path.join(folder, "ledger-sink.bin"))
    shutil.rmtree(folder)
    remove_memory(run)
    return delivered


def remove_memory(run):
    """Removes what a run of that id has left in shared memory."""
    for path in glob.glob(f"/dev/shm/*{run}*"):
        os.unlink(path)


def ledger(path):
    """What a sink has committed: hashes by frames (ledger/ledger.hpp)."""
    out = {}
    try:
        with open(path, "rb") as f:
            while len(record := f.read(64)) == 64:
                frame_number, _, _, _, committer, _, value = struct.unpack_from("<QQIIIIQ", record)
                if frame_number and committer:
                    out[frame_number - 1] = value
    except FileNotFoundError:
        pass
    return out


class Pair:
    """`more`: keys of source and sink; `send`, `receive`: of those stages."""

    def __init__(self, programs, size=1 << 20, address="127.0.0.1", port=47100, inside_a=(), inside_b=(), options_a=(), delay_ms=0,
                 more="", send="", receive="", in_flight=4):
        self.carousel = os.path.join(os.path.abspath(programs), "carousel")
        self.folder = tempfile.mkdtemp(prefix="carousel-link-")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        self.token = self.make_token("link.token")
        self.size, self.more = size, more
        where = {"address": address, "port": port, "token": "link.token", "more": more, "in_flight": in_flight}
        self.a = Host(self, "a", (SOURCE + SEND + END).format(name="a", bytes=size, of="source", **where) + send, options_a, inside_a)
        self.b = Host(self, "b", (RECEIVE + END).format(name="b", format=format_of(size), **where) + receive
                      + SINK.format(of="receive", bytes=size, delay=delay_ms, **where), inside=inside_b)

    def make_token(self, name, text=None):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text or os.urandom(32).hex())
        return path

    def one_host(self, frames):
        """The report of a run on one host, whose ledger is kept next to it."""
        one = Host(self, "one", (SOURCE + SINK).format(name="one", bytes=self.size, of="source", delay=0, more=self.more), ["--frames", str(frames)]).start()
        assert one.wait(120) == 0, one.text()
        return one.report()

    def hash_on_one_host(self, frames):
        return self.one_host(frames)["image_hash"]

    def end(self):
        for host in (self.a, self.b):
            host.end()
        shutil.rmtree(self.folder, True)


def check_report(host, frames):
    """Nothing lost, repeated or torn on this host."""
    r = host.report()
    for key in ("lost", "repeated", "torn"):
        assert r[key] == 0, f"{host.name}: {key} = {r[key]}\n{host.text()[-3000:]}"
    assert r["frames"] == frames, f"{host.name}: {r['frames']} of {frames} frames\n{host.text()[-3000:]}"


def hash_in(host, sink):
    """The hash of that sink. The report's own one is of the first sink that has any, which may be a sending stage: it hashes what it sends."""
    return next(s["image_hash"] for s in host.report()["sinks"] if s["stage"] == sink)


def check_whole(pair, frames):
    """Nothing lost, repeated or torn on either side; returns the hash of what was received."""
    for host in (pair.a, pair.b):
        check_report(host, frames)
    return pair.b.report()["image_hash"]


def kill_one(pair, dice, of_a, of_b):
    """SIGKILL to a stage of either side, or to a supervisor; returns the victim, if there was one. The links' own stages are hit twice as often."""
    what = dice.choice([*of_a, *of_b, "send", "receive", "supervisor a", "supervisor b"])
    if what.startswith("supervisor"):
        done = (pair.a if what.endswith("a") else pair.b).kill_supervisor()
    else:
        done = (pair.b if what in of_b or what == "receive" else pair.a).kill(what)
    return what if done else None


def add_sending_words(p):
    """Options of a campaign that set keys of the sending stage."""
    p.add_argument("--durable", action="store_true", help="frames are kept until the far side's sinks have them")
    p.add_argument("--compress", default="none")


def sending_words(a):
    """The keys, and the number of frames in flight that they take."""
    return f'release = "{"durable" if a.durable else "committed"}"\ncompress = "{a.compress}"\n', 16 if a.durable else 4
