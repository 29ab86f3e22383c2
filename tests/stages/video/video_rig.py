"""Sample videos, made by FFmpeg's own sources and encoders, and runs that read them."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import children_of, end_process, skip, wait_for  # noqa: E402

# Name -> the file's name and the encoder's options. The tests of kills and of damage use all of them.
CODECS = {
    "h264": ("h264.mp4", "-c:v libx264 -preset veryfast -bf 3 -g 30 -x264-params open-gop=1 -pix_fmt yuv420p"),
    "vp9": ("vp9.webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 40 -lag-in-frames 8 -auto-alt-ref 1"),
    "mjpeg": ("mjpeg.avi", "-c:v mjpeg -q:v 4 -pix_fmt yuvj420p"),
    "ffv1": ("ffv1.mkv", "-c:v ffv1 -g 12"),
    "prores": ("prores.mov", "-c:v prores"),
}
# H.264 with frames at irregular times
VARIABLE = ("variable.mkv", "-vf select='not(eq(mod(n,7),3))' -fps_mode vfr -c:v libx264 -preset veryfast -bf 2 -g 25")
WIDTH, HEIGHT = 160, 90


def require_tools(programs):
    """Ends this program as skipped if it cannot run here."""
    if not os.path.exists(os.path.join(programs, "carousel-video")):
        skip("this build has no carousel-video: FFmpeg's libraries were not there")
    if shutil.which("ffmpeg") is None:
        skip("there is no ffmpeg, which makes the sample videos")


def make(folder, kind, frames, size=(WIDTH, HEIGHT), source="testsrc2"):
    """Makes a sample video in `folder`; returns its path."""
    name, options = VARIABLE if kind == "variable" else CODECS[kind]
    path = os.path.join(folder, name)
    subprocess.run(["ffmpeg", "-loglevel", "error", "-y", "-f", "lavfi", "-i", f"{source}=size={size[0]}x{size[1]}:rate=30", "-frames:v", str(frames),
                    *options.split(), "-threads", "1", path], check=True, timeout=120, stdin=subprocess.DEVNULL)
    return path


def count_frames(path):
    """The number of frames that ffprobe decodes from it."""
    out = subprocess.run(["ffprobe", "-v", "quiet", "-count_frames", "-select_streams", "v:0", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", path],
                         capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
    return int(out.stdout.strip().strip(","))


def packets(path):
    """(presentation time, byte in the file, is a key frame) of each packet, in the order of decoding."""
    out = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts,pos,flags", "-of", "csv=p=0", path],
                         capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
    rows = [line.split(",") for line in out.stdout.split()]
    return [(int(row[0]), int(row[1]), "K" in row[2]) for row in rows]


class Run:
    """One run of a pipeline that reads a video and hashes its pictures."""

    def __init__(self, programs, url, keys="", options=(), sink='run = "carousel-display"\nout = "none"', environment=None, run_keys=""):
        self.folder = tempfile.mkdtemp(prefix="carousel-video-")
        self.programs = programs
        file = os.path.join(self.folder, "video.toml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(f'[pipeline]\nname = "video-test"\nsize = [{WIDTH}, {HEIGHT}]\n{run_keys}\n\n[[stage]]\nname = "video"\nrun = "carousel-video"\n'
                    f'url = "{url}"\n{keys}\n\n[[stage]]\nname = "sink"\n{sink}\ninputs = ["video"]\n')
        self.environment = {"CAROUSEL_LOG": "warning", **os.environ, "XDG_RUNTIME_DIR": self.folder,
                            "XDG_CACHE_HOME": os.path.join(self.folder, "cache"), **(environment or {})}
        self.report = os.path.join(self.folder, "report.json")
        with open(os.path.join(self.folder, "log.txt"), "wb") as log:
            self.process = subprocess.Popen([os.path.join(programs, "carousel"), "run", file, "--device", "cpu", "--no-color", "--report", self.report, *options],
                                            env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_process(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        with open(os.path.join(self.folder, "log.txt"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait(self, seconds=60):
        """The exit code; fails if the run does not end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run has not ended within {seconds:g} s\n{self.log()}") from None

    def result(self):
        with open(self.report, encoding="utf-8") as f:
            report = json.load(f)
        return {k: report.get(k) for k in ("frames", "lost", "repeated", "torn", "image_hash")}

    def decoder(self):
        """The pid of the process that reads the video; None between two processes."""
        for pid in children_of(self.process.pid):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="ascii") as f:
                    words = f.read().split("\0")
                if words[0].endswith("/carousel-video") and "--describe" not in words:
                    return pid
            except OSError:
                pass
        return None

    def decoded_frames(self):
        """The number of frames in the run's index: those that its decoders have output."""
        try:
            size = os.path.getsize(os.path.join(self.folder, "carousel", "video-test", "video-video.index"))
        except OSError:
            return 0
        return max(0, (size - 64) // 32)

    def kill_decoder_at(self, frame):
        wait_for(f"frame {frame}\n{self.log()}", lambda: self.decoded_frames() > frame)
        os.kill(wait_for("a process that reads the video", self.decoder), signal.SIGKILL)

    def kill_decoder(self, kills, rng, longest_s):
        """Kills each process of the video's stage after a random time; returns how many."""
        killed, last = 0, None
        while killed < kills and self.process.poll() is None:
            pid = self.decoder()
            if pid is None or pid == last:
                time.sleep(0.005)
                continue
            time.sleep(rng.uniform(0, longest_s))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            last = pid
            killed += 1
        return killed


def undisturbed(programs, path, keys=""):
    with Run(programs, path, keys) as run:
        code = run.wait()
        if code != 0:
            raise AssertionError(f"exit code {code}\n{run.log()}")
        return run.result()


def killed(programs, path, kills, seed, keys="", longest_s=0.3):
    """The result of a run whose decoder is killed `kills` times, and the number of kills."""
    with Run(programs, path, keys, ["--fps", "150"]) as run:
        done = run.kill_decoder(kills, random.Random(seed), longest_s)
        code = run.wait(180)
        if code != 0:
            raise AssertionError(f"seed {seed}: exit code {code} after {done} kills\n{run.log()}")
        return run.result(), done, run.log()
