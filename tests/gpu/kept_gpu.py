"""The saved data of frames on a GPU: kept_gpu.py PROGRAMS [--device cuda:0] [--parts recording,letter]
[--frames 1000] [--kills 20]

  recording  the demo's pictures, --frames of them, into a file, its recorder killed --kills times; the file is played on that device and on
             the CPU: the frames, and the image_hash, of the run that was recorded
  letter     a frame that faults the device is given up and saved; `carousel replay --dead-letter` runs its stage on it under compute-sanitizer,
             which names the kernel, the file and the line

Exit code 77 with the reason: no GPU. Without compute-sanitizer the second is reported as skipped."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import end_process, require_gpu, wait_for  # noqa: E402

DEMO = os.path.join(HERE, "..", "..", "pipelines", "demo.toml")
KERNELS = os.path.join(HERE, "cuda", "device_kernels.cu")
PLAYED = """[pipeline]
name = "played"
device = "{device}"
size = [640, 360]
[[stage]]
name = "tape"
run = "carousel-replay"
file = "{file}"
[[stage]]
name = "display"
run = "carousel-display"
inputs = ["tape"]
out = ""
"""
FAULTY = """[pipeline]
name = "faulty"
device = "{device}"
size = [16, 16]
[[stage]]
name = "numbers"
run = "{programs}/carousel-test-device"
[[stage]]
name = "middle"
run = "{programs}/carousel-test-device"
inputs = ["numbers"]
die_at = 40
die_how = "illegal"
die_incarnations = 1000
max_attempts = 1
[[stage]]
name = "sink"
run = "{programs}/carousel-test-device"
inputs = ["middle"]
sink = true
"""


class Kept:
    def __init__(self, a, folder):
        self.a, self.folder, self.program = a, folder, os.path.join(a.programs, "carousel")
        os.mkdir(os.path.join(folder, "runtime"), 0o700)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(folder, "runtime")}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def start(self, *words):
        self.log = open(self.path("log"), "w+", encoding="utf-8", errors="replace")
        return subprocess.Popen([self.program, "run", *words, "--no-color", "--report", self.path("report.json")], env=self.environment,
                                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def log_text(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def ended(self, run, code=0):
        try:
            got = run.wait(180)
        finally:
            end_process(run)
        assert got == code, f"exit code {got}, not {code}\n{self.log_text()[-3000:]}"
        with open(self.path("report.json"), encoding="utf-8") as f:
            report = json.load(f)
        assert [report[k] for k in ("lost", "repeated", "torn")] == [0, 0, 0], self.log_text()[-3000:]
        return report

    def ask(self, *words):
        return subprocess.run([self.program, *words], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False)

    def recorder(self):
        """Its pid, once it has written a frame."""
        try:
            stages = json.loads(self.ask("ps", "-p", "demo", "--json").stdout)["stages"]
        except (ValueError, KeyError):
            return None
        return next((s["pid"] for s in stages if s["name"] == "record" and s["state"] == "running" and s.get("commits")), None)

    def recording(self):
        tape = self.path("run.mcap")
        run = self.start(DEMO, "--device", self.a.device, "--size", "640x360", "--out", "", "--frames", str(self.a.frames), "--fps", "50",
                         "--record", "fragment", "--record-to", tape)
        last = None
        for k in range(self.a.kills):
            def another(last=last):
                assert run.poll() is None, f"the run has ended before kill {k + 1}\n{self.log_text()[-3000:]}"
                pid = self.recorder()
                return pid if pid != last else None
            last = wait_for("a recorder at work", another, 60)
            assert self.ask("kill", "record", "-p", "demo").returncode == 0, self.log_text()[-3000:]
        recorded = self.ended(run)
        restarts = next(s["restarts"] for s in recorded["stages"] if s["name"] == "record")
        assert recorded["frames"] == self.a.frames and restarts == self.a.kills, f"{recorded['frames']} frames, {restarts} restarts"
        for device in (self.a.device, "cpu"):
            played = self.ended(self.start(self.write("played.toml", PLAYED.format(device=device, file=tape))))
            assert (played["frames"], played["image_hash"]) == (self.a.frames, recorded["image_hash"]), f"other pictures when played on {device}"
        return f"{self.a.frames} frames, {restarts} kills of the recorder; played on {self.a.device} and on the CPU: hash {recorded['image_hash']}"

    def letter(self):
        sanitizer = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
        if not sanitizer:
            return "skipped: no compute-sanitizer here"
        with open(KERNELS, encoding="utf-8") as f:
            line = next(k for k, text in enumerate(f, 1) if "void write_to(" in text)
        self.ended(self.start(self.write("faulty.toml", FAULTY.format(device=self.a.device, programs=self.a.programs)), "--frames", "100"), 4)
        again = self.ask("replay", "--dead-letter", "40", "-p", "faulty", "--prefix", sanitizer)
        log_text = again.stdout + again.stderr
        found = re.search(r"Invalid __global__ write of size 8 bytes[\s\S]*?write_to\(.*?device_kernels\.cu:(\d+)", log_text)
        assert found and int(found[1]) == line, f"the sanitizer names no line {line} of device_kernels.cu:\n{log_text[-4000:]}"
        return f"frame 40 was given up; {os.path.basename(sanitizer)} names {os.path.basename(KERNELS)}:{line}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath), p.add_argument("--device", default="cuda:0")
    p.add_argument("--parts", default="recording,letter")
    p.add_argument("--frames", type=int, default=1000), p.add_argument("--kills", type=int, default=20)
    a = p.parse_args()
    require_gpu(a.device)
    for part in a.parts.split(","):
        with tempfile.TemporaryDirectory(prefix="carousel-kept-") as folder:
            print(f"{part}: {getattr(Kept(a, folder), part)()}", flush=True)


if __name__ == "__main__":
    main()
