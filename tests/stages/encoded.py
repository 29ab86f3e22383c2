"""Runs with carousel-encode, and what ffmpeg's programs find in their outputs."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

# What a pipeline of these tests draws: geometry, then two processes that make pictures.
SCENE = """
[pipeline]
name = "encoded"
device = "cpu"
size = [{width}, {height}]
fps = {fps}
frames = {frames}
[[stage]]
name = "geometry"
run = "carousel-geometry"
mesh = "torus-knots"
triangles = 500
[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]
[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]
"""
FPS = 60


def require(programs):
    if not os.path.exists(os.path.join(programs, "libcarousel-film.so")):
        skip("this build can't encode: ffmpeg's libraries were not there")
    if shutil.which("ffprobe") is None:
        skip("ffprobe is not there (apt-get install ffmpeg)")


class Run:
    """One run with encoders after stage `fragment` of a scene: {name: settings in TOML}."""

    def __init__(self, programs, encoders, frames, size=(160, 90), fps=FPS, more=(), stdout=None, scene=SCENE):
        self.folder = tempfile.mkdtemp(prefix="carousel-encoded-")
        self.programs, self.frames = programs, frames
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "CAROUSEL_LOG": "info"}
        text = scene.format(width=size[0], height=size[1], fps=fps, frames=frames)
        for name, keys in encoders.items():
            text += f'[[stage]]\nname = "{name}"\nrun = "carousel-encode"\ninputs = ["fragment"]\n{keys}\n'
        with open(self.path("p.toml"), "w", encoding="utf-8") as f:
            f.write(text)
        with open(self.path("log.txt"), "wb") as log:
            self.process = subprocess.Popen([os.path.join(programs, "carousel"), "run", self.path("p.toml"), "--report", self.path("report.json"),
                                             "--no-color", *more], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stderr=log,
                                            stdout=stdout or log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def log(self):
        with open(self.path("log.txt"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def stages(self):
        done = subprocess.run([os.path.join(self.programs, "carousel"), "ps", "--json"], env=self.environment, capture_output=True, text=True, timeout=30, check=False)
        try:
            return {s["name"]: s for s in json.loads(done.stdout)["stages"]}
        except (ValueError, KeyError):
            return {}

    def kill(self, name, times, every):
        """Kills the process of a stage after every `every` frames that it delivers. Returns the number of kills."""
        killed, seen, last, end = 0, 0, None, time.monotonic() + 60 + 3 * times
        while killed < times and self.process.poll() is None and time.monotonic() < end:
            stage = self.stages().get(name, {})
            pid, frames = stage.get("pid"), stage.get("frames", 0)
            if pid and pid != last and frames >= seen + every:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
                killed, seen, last = killed + 1, frames, pid
            time.sleep(0.01)
        return killed

    def finish(self, seconds=120):
        """Waits for the end of the run; every frame must have arrived once."""
        code = self.process.wait(seconds)
        if code != 0:
            raise AssertionError(f"the run ended with code {code}\n{self.log()}")
        with open(self.path("report.json"), encoding="utf-8") as f:
            report = json.load(f)
        found = [report[k] for k in ("frames", "lost", "repeated", "torn")]
        if found != [self.frames, 0, 0, 0]:
            raise AssertionError(f"frames, lost, repeated, torn: {found}\n{self.log()}")
        return report


def packets(path):
    """(pts in seconds, key) of each packet of a file, in the file's order."""
    out = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", path],
                         capture_output=True, text=True, timeout=60, check=True)
    rows = [line.split(",") for line in out.stdout.split() if line]
    return [(float(r[0]), "K" in r[1]) for r in rows]


def frame_numbers(path, fps=FPS):
    """The frame numbers of a file by its times, which must be those of whole frames (Matroska rounds to milliseconds)."""
    numbers = []
    for pts, _ in packets(path):
        n = round(pts * fps)
        if abs(pts - n / fps) > 0.00051:
            raise AssertionError(f"{path}: {pts} s is not the time of a frame at {fps} frames/s")
        numbers.append(n)
    return numbers


def decoded(path):
    """The number of pictures that a player decodes from a file; raises if it reports an error."""
    out = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", path],
                         capture_output=True, text=True, timeout=120, check=True)
    if out.stderr.strip():
        raise AssertionError(f"{path}: {out.stderr}")
    return int(out.stdout.strip().split(",")[0].split()[0])


def picture_hash(path):
    """A hash of all decoded pictures, as RGB."""
    out = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-fps_mode", "passthrough", "-pix_fmt", "rgb24", "-f", "hash", "-hash", "sha256", "-"],
                         capture_output=True, text=True, timeout=120, check=True)
    return out.stdout.strip()


def psnr(path, truth):
    """The mean PSNR of a file's pictures in dB, compared picture by picture."""
    graph = "[0:v]setpts=N/TB,format=yuv420p[a];[1:v]setpts=N/TB,scale=out_color_matrix=bt709,format=yuv420p[b];[a][b]psnr"
    out = subprocess.run(["ffmpeg", "-v", "info", "-nostats", "-i", path, "-i", truth, "-lavfi", graph, "-fps_mode", "passthrough", "-f", "null", "-"],
                         capture_output=True, text=True, timeout=120, check=True)
    return float(re.search(r"PSNR.* average:([0-9.]+|inf)", out.stderr).group(1))
