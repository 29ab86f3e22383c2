#!/usr/bin/env python3
"""Kills carousel-encode again and again, for each combination of codec and container, and compares its output with that of an
encoder that was not killed. Lossless outputs must decode to the same pictures; of lossy ones the count, the times and the PSNR
(within 0.1 dB) must be equal.
Usage: encode_kills.py FOLDER_OF_PROGRAMS [--only NAME] [--kills 50]"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import encoded  # noqa: E402

COMBINATIONS = {   # the file's name, and the encoder's keys
    "h264-mp4": ("x.mp4", 'codec = "h264"'),
    "hevc-mkv": ("x.mkv", 'codec = "hevc"'),
    "av1-mp4": ("x.mp4", 'codec = "av1"'),
    "vp9-mkv": ("x.mkv", 'codec = "vp9"'),
    "h264-hls": ("x.m3u8", 'codec = "h264"\nsegment_s = 0.5\ngop = 30'),
    "ffv1-mkv": ("x.mkv", 'codec = "ffv1"'),
    "rgb-mkv": ("x.mkv", 'encoder = "libx264rgb"\nquality = 0'),
}
LOSSLESS = ("ffv1-mkv", "rgb-mkv")
SPACING = 8   # frames from one kill to the next


def check(programs, name, kills):
    file, keys = COMBINATIONS[name]
    encoders = {"killed": f'url = "killed/{file}"\n{keys}', "quiet": f'url = "quiet/{file}"\n{keys}', "truth": 'url = "truth.mkv"\ncodec = "ffv1"'}
    frames = 120 + kills * 2 * SPACING
    begun = time.monotonic()
    with encoded.Run(programs, encoders, frames) as run:
        killed = run.kill("killed", kills, SPACING)
        output = run.finish(300)["output_directory"]
        seconds = time.monotonic() - begun
        paths = {k: os.path.join(output, k, file) for k in ("killed", "quiet")}
        truth = os.path.join(output, "truth.mkv")
        problems = []
        if killed < kills:
            problems.append(f"only {killed} kills before the run ended")
        for path in paths.values():
            if encoded.frame_numbers(path) != list(range(frames)):
                problems.append(f"{path}: times of {len(encoded.frame_numbers(path))} frames, not those of each of {frames} frames once")
            if encoded.decoded(path) != frames:
                problems.append(f"{path}: {encoded.decoded(path)} pictures are decoded, not {frames}")
        if name in LOSSLESS:
            hashes = {encoded.picture_hash(p) for p in (*paths.values(), truth)}
            if len(hashes) != 1:
                problems.append("the pictures differ")
            quality = "same pictures"
        else:
            a, b = (encoded.psnr(p, truth) for p in paths.values())
            if a < b - 0.1:
                problems.append(f"PSNR {a:.2f} dB instead of {b:.2f}")
            quality = f"PSNR {a:.2f} dB (not killed: {b:.2f})"
    print(f"{name:9} {killed:3} kills {frames:5} frames {seconds:6.1f} s  {quality}  {'; '.join(problems) or 'ok'}", flush=True)
    return not problems


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--only", choices=sorted(COMBINATIONS))
    p.add_argument("--kills", type=int, default=50)
    a = p.parse_args()
    programs = os.path.abspath(a.programs)
    encoded.require(programs)
    names = [a.only] if a.only else list(COMBINATIONS)
    return 0 if all([check(programs, n, a.kills) for n in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
