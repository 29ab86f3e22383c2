"""looks.toml on a GPU and on the CPU: equal pictures, also while the stages on the GPU are killed, and also with other light and
materials and of a mesh that moves (nodes, a skin, morph targets); parameters that change while the work of frames runs as graphs; then
frames per second of the GPU, with and without temporal anti-aliasing.
looks_gpu.py PROGRAMS [--device cuda:0] [--frames 120] [--speed-frames 2000] [--size 1280x720]

Exit code 77 with the reason: no GPU."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "stages", "assets"))
from looks import STAGES, without_taa  # noqa: E402
from moving_model import write_moving_model  # noqa: E402
from processes import end_process, require_gpu, wait_for  # noqa: E402

LOOKS = os.path.join(HERE, "..", "..", "pipelines", "looks.toml")
OTHER_LIGHT = ["light=[0.2, 0.9, 0.4]", "sun=1.5", "fog=9", "tint=[1, 0.5, 0.25]", "roughness=0.3", "metallic=0.5", "bloom=0", "tone_map=aces"]


class Runs:
    def __init__(self, programs, size, folder):
        self.carousel, self.size, self.folder = os.path.join(os.path.abspath(programs), "carousel"), size, folder
        self.without_taa = os.path.join(folder, "single.toml")
        with open(LOOKS, encoding="utf-8") as looks, open(self.without_taa, "w", encoding="utf-8") as out:
            out.write(without_taa(looks.read()))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder}

    def run(self, device, frames, kills=False, options=(), changes=(), file=LOOKS):
        """`changes`: parameters that are set one after the other while it runs."""
        report = os.path.join(self.folder, "report.json")
        run = subprocess.Popen([self.carousel, "run", file, "--device", device, "--size", self.size, "--frames", str(frames), "--out", "",
                                "--report", report, "--no-color", *options], env=self.environment, cwd=self.folder)
        try:
            for stage in [*STAGES, "display"] if kills else []:
                wait_for("a stage to kill", lambda s=stage: self.command("kill", s), 60)
            for change in changes:
                wait_for("a run to change", lambda c=change: self.command("set", c), 60)
            code = run.wait(580)
        finally:
            end_process(run)
        if code != 0:
            sys.exit(f"looks.toml on {device}: exit code {code}")
        with open(report, encoding="utf-8") as f:
            return json.load(f)

    def command(self, *words):
        done = subprocess.run([self.carousel, *words], env=self.environment, capture_output=True, timeout=20, check=False)
        return done.returncode == 0


def device_times(programs, device):
    """Device time of each stage, with one and with four samples per pixel, and of each kernel, alone on the GPU: 24 copies, together
    1 million triangles."""
    for samples in ("1", "4"):
        print(f"{samples} samples per pixel:", flush=True)
        for size in ("1280x720", "1920x1080"):
            subprocess.run([os.path.join(programs, "carousel"), "bench", "raster", "--stages", "--device", device, "--scene", "torus-knots",
                            "--triangles", "41667", "--instances", "24", "--size", size, "--samples", samples], check=True, timeout=200)
    parts = os.path.join(programs, "raster_parts")
    if os.path.exists(parts):
        subprocess.run([parts, "--device", device.rpartition(":")[2], "looks:torus-knots:1000000:1920x1080"], check=True, timeout=200)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--speed-frames", type=int, default=2000)
    parser.add_argument("--size", default="1280x720")
    a = parser.parse_args()
    require_gpu(a.device)
    folder = tempfile.mkdtemp(prefix="carousel-looks-gpu-")
    try:
        runs = Runs(a.programs, a.size, folder)
        model = os.path.join(folder, "moving.gltf")
        write_moving_model(model)
        # The time of a frame of the moving mesh is its number / fps, so all runs have the same fps.
        moving = ("--set", f"geometry.mesh={model}")
        slow = ("--fps", "10")
        changed = [f"--set=parameters.{value}" for value in OTHER_LIGHT]
        for scene, always in (("looks.toml", ()), ("other light and materials", changed), ("the moving mesh", moving)):
            expected = runs.run("cpu", a.frames, options=(*always, *(slow if always == moving else ())))["image_hash"]
            for kills in (False, True):
                report = runs.run(a.device, a.frames, kills, (*always, *(slow if kills or always == moving else ())))
                if [report["image_hash"], report["lost"], report["repeated"], report["torn"]] != [expected, 0, 0, 0]:
                    sys.exit(f"the pictures of {scene} on {a.device} (kills: {kills}) differ from those of the CPU: "
                             f"{report['image_hash']}, {expected}")
                if kills and report["restarts"] <= len(STAGES):
                    sys.exit(f"only {report['restarts']} restarts of {len(STAGES) + 1} killed stages")
                print(f"{scene}, kills {kills}: the CPU's pictures, {report['restarts']} restarts", flush=True)
        report = runs.run(a.device, a.frames, options=("--fps", "30", "--set", "graphs=true"), changes=("bloom=0", "bloom=0.3", "fog=9", "tone_map=aces"))
        if [report["lost"], report["repeated"], report["torn"], report["restarts"]] != [0, 0, 0, 0]:
            sys.exit(f"graphs with parameters that change: {report['restarts']} restarts, lost {report['lost']}")
        print("pictures equal those of the CPU; graphs take changed parameters")
        if a.speed_frames > 0:
            for isolation, file in (("process", LOOKS), ("mps", LOOKS), ("mps", runs.without_taa)):
                report = runs.run(a.device, a.speed_frames, options=("--set", f"isolation={isolation}"), file=file)
                print(f"{isolation}, {'with' if file == LOOKS else 'without'} taa: {report['frames_per_second']:.0f} frames/s at {a.size}")
                for stage in report["stages"]:
                    print(f"    {stage['name']:9} busy {stage['busy']:.0%}, latency {stage['latency_ms']['p50']:.3f} ms, "
                          f"waits for input {stage['wait_input']:.0%}, output {stage['wait_output']:.0%}, a turn {stage['wait_turn']:.0%}")
            device_times(a.programs, a.device)
    finally:
        shutil.rmtree(folder, True)


if __name__ == "__main__":
    main()
