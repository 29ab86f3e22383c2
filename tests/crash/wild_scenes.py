"""What wild_writes.py writes into: one run or two, each a pipeline with features that a rebuild has to keep, and the programs at its ports."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

NUMBER = '[[stage]]\nname = "{0}"\nrun = "{programs}/carousel-test-number"\n{1}\n'
FORK = '[[stage]]\nname = "{0}"\nrun = "{programs}/carousel-test-fork"\n{1}\n'
PORT = '[[stage]]\nname = "{0}"\nrun = "port"\n{1}\n'
LINK = '[[stage]]\nname = "{0}"\nrun = "{programs}/carousel-{0}"\naddress = "127.0.0.1"\nport = {port}\ntoken = "link.token"\n{1}\n'
OF_NUMBERS = json.dumps({"type": "test.number", "constants": {}, "planes": [{"name": "value", "element": "u64", "shape": [1]}]})

# A pipeline is a list of (template, name of the stage, its further keys).
CHAIN = [(NUMBER, "numbers", ""), (NUMBER, "middle", 'inputs = ["numbers"]\nwork_ms = 1'), (NUMBER, "sink", 'inputs = ["middle"]\nsink = true')]
FORKED = [(NUMBER, "numbers", ""), (FORK, "fork", 'inputs = ["numbers"]'), (FORK, "join", 'inputs = ["fork", "fork.square"]')]
STANDBYS = [(template, name, keys + "\nstandby = true" + ("\ninstances = 2" if name == "middle" else "")) for template, name, keys in CHAIN]
STATE = [(template, name, keys + ("\nstate = true" if name == "middle" else "")) for template, name, keys in CHAIN]
PORTS = [(PORT, "camera", 'output = { value = "u64[512]" }\ntype = "test.number"\nends = true'),
         (PORT, "analysis", 'inputs = ["camera"]'),
         (NUMBER, "middle", 'inputs = ["camera"]\nwork_ms = 1'), (NUMBER, "sink", 'inputs = ["middle"]\nsink = true')]


def sender(release):
    return [(NUMBER, "numbers", ""), (LINK, "send", f'inputs = ["numbers"]\nrelease = "{release}"\nin_flight = {16 if release == "durable" else 4}')]


RECEIVER = [(LINK, "receive", f"in_flight = 4\nformat = '{OF_NUMBERS}'"), (NUMBER, "sink", 'inputs = ["receive"]\nsink = true')]
PROGRAMS = [("write-plain", "camera", "4000"), ("read-all", "analysis", "0")]

# By layout: the pipelines (None: the demo), and the programs at ports.
LAYOUTS = {
    "demo": ([None], []),
    "chain": ([CHAIN], []),
    "forked": ([FORKED], []),
    "standbys": ([STANDBYS], []),
    "state": ([STATE], []),
    "ports": ([PORTS], PROGRAMS),
    "link": ([sender("committed"), RECEIVER], []),
    "durable-link": ([sender("durable"), RECEIVER], []),
}


class Run:
    """One run, and its log lines with the times at which they came."""

    def __init__(self, scene, name, file, words):
        self.scene, self.name = scene, name
        self.status = re.compile(rf"^{name}: .*[, ](\d+) (?:of \d+ )?frames, ")
        self.report_file = os.path.join(scene.folder, name + ".json")
        self.process = subprocess.Popen(
            [os.path.join(scene.programs, "carousel"), "run", file, "--name", name, *words, "--no-color", "--report", self.report_file],
            env=scene.environment, cwd=scene.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            errors="replace")
        self.lines, self.frames, self.heard = [], 0, time.monotonic()
        self.longest_silence = 0.0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            status = self.status.match(line)
            if status and int(status[1]) == self.frames:
                continue  # a line that reports that nothing has changed does not count
            if status:
                self.frames = int(status[1])
            self.receive_lines()
            self.lines.append(line.rstrip("\n"))

    def receive_lines(self):
        now = time.monotonic()
        self.longest_silence = max(self.longest_silence, now - self.heard)
        self.heard = now

    def begin_listening(self):
        self.receive_lines()
        self.longest_silence = 0.0

    def ended(self):
        return self.process.poll() is not None

    def block(self):
        """The path of the control block in /dev/shm."""
        with open(os.path.join(self.scene.runtime, "carousel", self.name, "run.json"), encoding="utf-8") as f:
            run_id = json.load(f)["run_id"]
        return next(p for p in glob.glob("/dev/shm/*") if run_id in p and "trace" not in p)

    def what_happened(self):
        """Its log without the lines that show only its state."""
        return [line for line in self.lines if not self.status.match(line)]

    def report(self):
        try:
            with open(self.report_file, encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return None

    def interrupt(self):
        if not self.ended():
            self.process.send_signal(signal.SIGINT)

    def stop(self):
        self.interrupt()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(10)


class Program:
    """carousel-test-port-io at a port."""

    def __init__(self, scene, name, words):
        what, port, pause_us = words
        self.port, self.output_file = port, os.path.join(scene.folder, port + ".out")
        with open(self.output_file, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([os.path.join(scene.programs, "carousel-test-port-io"), what, name, port, pause_us],
                                            env=scene.environment, cwd=scene.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def output(self):
        with open(self.output_file, encoding="utf-8", errors="replace") as f:
            return f.read()

    def missing(self):
        """The frames that a reader did not get."""
        gaps = re.findall(r"^frame (\d+) for (\d+)", self.output(), re.MULTILINE)
        return [n for after, first in gaps for n in range(int(first), int(after))]

    def repeated(self):
        """The frames that a reader got twice. A frame that it missed may come later, after a rebuild."""
        return [int(n) for n, m in re.findall(r"^frame (\d+) for (\d+)", self.output(), re.MULTILINE)
                if int(n) < int(m) and int(n) not in self.missing()]

    def end(self):
        """Waits for its end; returns its exit code, or None if it had to be killed."""
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


class Scene:
    """The runs of a layout. The last one delivers the frames that are judged."""

    def __init__(self, layout, programs, pipelines, frames, fps, on, place):
        """`on`: options that choose the device; `place`: a number that no other scene has at the same time."""
        self.programs = programs
        self.folder = tempfile.mkdtemp(prefix="carousel-wild-")
        self.runtime = os.path.join(self.folder, "runtime")
        os.mkdir(self.runtime, 0o700)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        with open(os.open(os.path.join(self.folder, "link.token"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(os.urandom(32).hex())
        texts, external = LAYOUTS[layout]
        self.runs, self.external = [], []
        for k, stages in reversed(list(enumerate(texts))):   # the receiver is there before the sender
            name = "wild" if len(texts) == 1 else f"wild{k}"
            words = [*on]
            if k == 0:
                words += ["--frames", str(frames)] + (["--fps", str(fps)] if not external else [])
            if stages is None:
                file = os.path.join(pipelines, "demo.toml")
                words += ["--size", "64x36", "--set", "geometry.triangles=200", "--out", ""]
            else:
                file = os.path.join(self.folder, name + ".toml")
                with open(file, "w", encoding="utf-8") as out:
                    out.write(f'[pipeline]\nname = "{name}"\nallow_dead_letters = {frames if external else 0}\n\n')
                    for template, stage, keys in stages:
                        out.write(template.format(stage, keys, programs=programs, port=10000 + 100 * place))
            self.runs.insert(0, Run(self, name, file, words))
        if external:
            while not self.runs[0].ended() and not os.path.exists(os.path.join(self.runtime, "carousel", "wild", "control.sock")):
                time.sleep(0.02)
            self.external = [Program(self, "wild", words) for words in external]

    def recorded(self):
        """The frames in the account of a sink of the last run; 0 if it is over."""
        try:
            return max(os.path.getsize(file) // 64
                       for file in glob.glob(os.path.join(self.runtime, "carousel", self.runs[-1].name, "ledger-*.bin")))
        except (OSError, ValueError):
            return 0

    def ended(self):
        """True once all runs have ended. A run whose neighbour has ended with an error waits for it, so it is ended."""
        if any(r.ended() and r.process.returncode != 0 for r in self.runs):
            for r in self.runs:
                r.interrupt()
            time.sleep(0.5)
        return all(r.ended() for r in self.runs)

    def end(self):
        for r in self.runs:
            r.stop()
        for p in self.external:
            p.end()
        shutil.rmtree(self.folder, True)
