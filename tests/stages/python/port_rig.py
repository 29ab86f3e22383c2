"""A pipeline of two ports and nothing else, and external programs at them; for tests of ports in Python."""
import os
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PIPELINE = """[pipeline]
name = "{name}"
device = "cpu"
{keys}
[[stage]]
name = "camera"
run = "port"
output = {{ value = "u64[{elements}]", part = "f32[64]" }}
ends = true
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""
# Frames pass the port while no program is attached; in addition a stage reads every frame.
SKIPS = f"""vacant = "skip"
[[stage]]
name = "witness"
run = "{HERE}/eater.py"
inputs = ["camera"]
"""


def until(true, timeout_s=30):
    """Waits for a condition; returns whether it became true."""
    end = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Program:
    """port_io.py as a process; killed at the end of the test."""

    def __init__(self, folder, *words):
        self.output_path = tempfile.mkstemp(dir=folder, prefix=words[0])[1]
        with open(self.output_path, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "port_io.py"), *map(str, words)], stdout=out,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def output(self):
        with open(self.output_path, encoding="utf-8") as text:
            return text.read()

    def frames(self):
        return self.output().count("frame ")

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.kill()


class Rig:
    """The pipeline as it runs: a carousel.Running in `run`."""

    def __init__(self, test, keys="", frames=None, more="", elements=512):
        import carousel
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.test, self.folder = test, folder.name
        path = os.path.join(self.folder, "ports.toml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(PIPELINE.format(name=f"ports-{os.getpid()}", keys=keys, elements=elements) + more)
        self.run = carousel.Pipeline(path).start(frames=frames)
        test.addCleanup(self.run.__exit__)
        self.name = self.run.name

    def program(self, what, pause_s=0.0):
        started = Program(self.folder, what, self.name, "camera" if what == "write" else "analysis", pause_s)
        self.test.addCleanup(started.close)
        return started

    def rebuild(self):
        """Has the run's control block made again, as after damage."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.settimeout(10)
            control.connect(os.path.join(os.environ["XDG_RUNTIME_DIR"], "carousel", self.name, "control.sock"))
            control.send(b'{"type": "rebuild"}')
            self.test.assertIn(b'"ok":true', control.recv(65536).replace(b" ", b""))

    def end(self, code=0):
        """Ends the run, with nothing lost, repeated or torn."""
        self.test.assertEqual(self.run.wait(60), code, self.run.log_text(40))
        report = self.run.report()
        self.test.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0], self.run.log_text(40))
        return report
