"""`carousel debug` with cuda-gdb: debug_gpu.py BUILD

A stage on the GPU is stopped for four times its deadline and not replaced; the command is killed while another stage is stopped, which
then continues or is replaced; no frame is lost. Exit code 77 with the reason: no GPU, or no cuda-gdb."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, require_gpu, skip, wait_for  # noqa: E402

STAGES = ["geometry", "vertex", "fragment", "display"]
LIMIT_S = 120
PIPELINE = """
[pipeline]
name = "gpu"
device = "cuda:0"
size = [1280, 720]
fps = 60
frame_timeout_ms = 1500
stall_timeout_ms = 3000
""" + "\n".join(f'[[stage]]\nname = "{stage}"\nrun = "carousel-{stage}"\n' + (f'inputs = ["{STAGES[i - 1]}"]\n' if i else "") +
                ('out = ""\n' if stage == "display" else "") for i, stage in enumerate(STAGES))


class Debugged:
    def __init__(self, build, folder):
        self.carousel, self.folder = os.path.join(os.path.abspath(build), "carousel"), folder
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "PATH": os.environ["PATH"] + ":/usr/local/cuda/bin"}
        pipeline = os.path.join(folder, "gpu.toml")
        with open(pipeline, "w", encoding="utf-8") as f:
            f.write(PIPELINE)
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.run = subprocess.Popen([self.carousel, "run", pipeline, "--report", self.report_path, "--no-color"], cwd=folder,
                                    env=self.environment, stdout=self.log, stderr=self.log)

    @property
    def report_path(self):
        return os.path.join(self.folder, "report.json")

    def stages(self):
        found = subprocess.run([self.carousel, "ps", "-p", "gpu", "--json"], env=self.environment, capture_output=True, text=True,
                               check=False)
        return {row["name"]: row for row in json.loads(found.stdout)["stages"]} if found.returncode == 0 else {}

    def frames(self, more_than=0):
        return min((row["frames"] for row in self.stages().values()), default=0) > more_than

    def pids(self):
        return {name: row["pid"] for name, row in self.stages().items()}

    def debug(self, stage, *commands):
        words = [self.carousel, "debug", stage, "-p", "gpu", "--batch"]
        for command in commands:
            words += ["--ex", command]
        return subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)


def check(what, holds, text=""):
    print(("passed: " if holds else "FAILED: ") + what, flush=True)
    if not holds:
        sys.exit(text)


def trial(d):
    wait_for("frames of all stages", d.frames, 60)
    before = d.pids()
    debugger = d.debug("fragment", "info cuda devices", "info cuda kernels", "bt 5", "shell sleep 6")
    out = debugger.communicate(timeout=LIMIT_S)[0]
    print(out)
    check("cuda-gdb attached to a stage on the GPU, and ended", debugger.returncode == 0 and "cuda-gdb" in out, out)
    check("it shows the GPU", "sm_" in out, out)
    frames = max(row["frames"] for row in d.stages().values())
    wait_for("frames after the debugger", lambda: d.frames(frames + 60), 30)
    check("no stage was replaced", d.pids() == before, str((before, d.pids())))

    debugger = d.debug("vertex", "shell sleep 60")
    wait_for("the debugger has stopped the stage", lambda: "is debugged" in log_of(d, "vertex"), LIMIT_S)
    time.sleep(5)   # cuda-gdb needs a few seconds to attach
    os.killpg(debugger.pid, signal.SIGKILL)
    debugger.wait()
    wait_for("the end of the suspension", lambda: "the debugger has ended" in log_of(d, "vertex"), 30)
    frames = max(row["frames"] for row in d.stages().values())
    wait_for("frames after the debugger's death", lambda: d.frames(frames + 60), 60)
    print("after the debugger's death:", "the stage continues" if d.pids() == before else "the stage was replaced", flush=True)
    d.run.send_signal(signal.SIGTERM)
    code = d.run.wait(60)
    with open(d.report_path, encoding="utf-8") as f:
        report = json.load(f)
    print({key: report[key] for key in ("frames", "restarts", "stalls")}, flush=True)
    check("the run ended with 0", code == 0, str(code))
    check("no frame was lost, repeated or torn", report["lost"] == report["repeated"] == report["torn"] == 0, str(report))


def log_of(d, stage):
    with open(d.log.name, encoding="utf-8") as f:
        return "\n".join(line for line in f if stage in line)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    require_gpu("cuda:0")
    if not shutil.which("cuda-gdb") and not os.path.exists("/usr/local/cuda/bin/cuda-gdb"):
        skip("cuda-gdb is missing")
    with tempfile.TemporaryDirectory(prefix="carousel-debug-gpu-") as folder:
        d = Debugged(sys.argv[1], folder)
        try:
            trial(d)
        except BaseException:
            with open(d.log.name, encoding="utf-8") as f:
                print(f.read()[-6000:])
            raise
        finally:
            end_process(d.run)
            d.log.close()


if __name__ == "__main__":
    main()
