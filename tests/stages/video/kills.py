#!/usr/bin/env python3
"""Kills of the decoder: the run has the frames and the hash of an undisturbed run.
Usage: kills.py FOLDER_OF_PROGRAMS [--codecs h264,vp9,...] [--kills N]. The seed is in CAROUSEL_TEST_SEED."""
import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import video_rig as rig  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=os.path.abspath)
    parser.add_argument("--codecs", default=",".join([*rig.CODECS, "variable"]))
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    rig.require_tools(options.programs)
    seed = int(os.environ.get("CAROUSEL_TEST_SEED", "1"))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="carousel-video-") as folder:
        for codec in options.codecs.split(","):
            path = rig.make(folder, codec, 300 + 30 * options.kills)
            expected = rig.undisturbed(options.programs, path)
            expected_frames = rig.count_frames(path)
            begun = time.monotonic()
            result, kills, log = rig.killed(options.programs, path, options.kills, seed)
            good = result == expected and result["frames"] == expected_frames and kills == options.kills
            print(f"{codec:8} {kills} kills, {result['frames']} of {expected_frames} frames, {time.monotonic() - begun:.1f} s: "
                  f"{'equal to an undisturbed run' if good else f'DIFFERENT: {result} instead of {expected}'}")
            if not good:
                failed += 1
                print(log)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
