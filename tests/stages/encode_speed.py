#!/usr/bin/env python3
"""The speed of decoding, tinting and encoding 1080p H.264 (carousel-video, a Python stage, carousel-encode), compared with ffmpeg
alone: the same file, pixel format, encoder settings and threads, in alternating rounds. The times are of whole commands; on a busy machine compare their CPU times.
Usage: encode_speed.py FOLDER_OF_PROGRAMS [--frames 600] [--rounds 5] [--no-tint] [--least 0.9]"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import encoded  # noqa: E402

SIZE, RATE = "1920x1080", 30
TINT = '''import carousel

ADDED = bytes(min(n + 10, 255) for n in range(256))

@carousel.stage(output=carousel.like(0), device="cpu")
def tint(y, uv, out_y, out_uv):
    memoryview(out_y).cast("B")[:] = memoryview(y).cast("B")
    memoryview(out_uv).cast("B")[:] = memoryview(uv).cast("B").tobytes().translate(ADDED)
'''
ENCODER = ["-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-crf", "18", "-g", "60", "-bf", "0"]


def pipeline(source, output, tint):
    middle = '[[stage]]\nname = "tint"\nrun = "tint.py"\ninputs = ["video"]\n' if tint else ""
    return f"""[pipeline]
name = "speed"
device = "cpu"
size = [{SIZE.replace("x", ", ")}]
[[stage]]
name = "video"
run = "carousel-video"
url = "{source}"
pixel_format = "nv12"
{middle}[[stage]]
name = "encode"
run = "carousel-encode"
inputs = ["{'tint' if tint else 'video'}"]
url = "{output}"
fps = {RATE}
"""


def timed(command, **options):
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: code {done.returncode}\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--frames", type=int, default=600)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--no-tint", action="store_true")
    p.add_argument("--least", type=float, default=0.9)
    a = p.parse_args()
    programs = os.path.abspath(a.programs)
    encoded.require(programs)
    folder = tempfile.mkdtemp(prefix="carousel-speed-")
    try:
        source, ours, theirs = (os.path.join(folder, n) for n in ("in.mp4", "ours.mp4", "theirs.mp4"))
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size={SIZE}:rate={RATE}", "-frames:v", str(a.frames), "-c:v", "libx264",
                        "-preset", "veryfast", "-pix_fmt", "yuv420p", source], stdin=subprocess.DEVNULL, timeout=300, check=True)
        with open(os.path.join(folder, "tint.py"), "w", encoding="utf-8") as f:
            f.write(TINT)
        with open(os.path.join(folder, "p.toml"), "w", encoding="utf-8") as f:
            f.write(pipeline(source, ours, not a.no_tint))
        cores = len(os.sched_getaffinity(0))
        graph = "null" if a.no_tint else "lutyuv=u=val+10:v=val+10"
        alone = ["ffmpeg", "-v", "error", "-y", "-threads", str(min(cores, 8)), "-i", source, "-vf", graph, "-pix_fmt", "nv12", *ENCODER,
                 "-threads", str(min(cores, 8)), theirs]
        run = [os.path.join(programs, "carousel"), "run", os.path.join(folder, "p.toml"), "--no-color"]
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        ratios = []
        for k in range(a.rounds):
            (ffmpeg, ffmpeg_cpu), (carousel, carousel_cpu) = timed(alone), timed(run, env=environment, cwd=folder)
            if k == 0 and encoded.decoded(ours) != a.frames:
                raise RuntimeError(f"{encoded.decoded(ours)} frames in the file instead of {a.frames}")
            ratios.append(ffmpeg / carousel)
            print(f"round {k + 1}: ffmpeg {a.frames / ffmpeg:7.1f} frames/s, carousel {a.frames / carousel:7.1f} frames/s, ratio {ratios[-1]:.3f}; "
                  f"CPU {ffmpeg_cpu:.1f} and {carousel_cpu:.1f} s", flush=True)
        middle = statistics.median(ratios)
        print(f"median ratio {middle:.3f} on {cores} cores (aim {a.least}): {'ok' if middle >= a.least else 'missed'}")
        return 0 if middle >= a.least else 1
    finally:
        shutil.rmtree(folder, True)


if __name__ == "__main__":
    sys.exit(main())
