#!/usr/bin/env python3
"""Damaged videos end no run and hang none, and frames after the damage are delivered.
Usage: damage.py FOLDER_OF_PROGRAMS [--codecs h264,vp9,...] [--seeds N]. The first seed is in CAROUSEL_TEST_SEED."""
import argparse
import collections
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import video_rig as rig  # noqa: E402

FRAMES = 90
UNREPORTED = 15   # frames that a demuxer may lose without a report, so that later frames have lower numbers


def damage(data, rng):
    """Flips bits, overwrites, zeroes or removes bytes between the first and the last twentieth of the file: its headers stay whole. Returns
    the bytes, whether the file may be refused as a whole, because its table of packets is at another place, and the place after which it is
    as before (None: nowhere)."""
    data = bytearray(data)

    def place(length=1):
        return rng.randrange(len(data) // 20, len(data) * 19 // 20 - length)

    how = rng.choice(("bits", "bits", "many bits", "noise", "zeros", "removed"))
    length = rng.randint(16, len(data) // 20)
    if "bits" in how:
        places = [place() for _ in range(rng.randint(1, 8) if how == "bits" else rng.randint(50, 400))]
        for at in places:
            data[at] ^= 1 << rng.randrange(8)
        return bytes(data), False, max(places) + 1
    at = place(length)
    data[at:at + length] = {"noise": rng.randbytes(length), "zeros": bytes(length), "removed": b""}[how]
    return bytes(data), how == "removed", None if how == "removed" else at + length


def first_after(path, place):
    """The number of the first key frame that begins at or after a byte of the file; FRAMES: there is none."""
    rows = rig.packets(path)
    later = [pts for pts, position, key in rows if key and position >= place]
    return sum(pts < min(later) for pts, _, _ in rows) if later else FRAMES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=os.path.abspath)
    parser.add_argument("--codecs", default=",".join(rig.CODECS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--keep", help="folder for the damaged videos of failures")
    options = parser.parse_args()
    rig.require_tools(options.programs)
    first = int(os.environ.get("CAROUSEL_TEST_SEED", "1"))
    failures = 0
    with tempfile.TemporaryDirectory(prefix="carousel-video-") as folder:
        codecs = options.codecs.split(",")
        whole = {codec: rig.make(folder, codec, FRAMES) for codec in codecs}
        found = {codec: collections.Counter() for codec in codecs}
        for seed in range(first, first + options.seeds):
            codec = codecs[seed % len(codecs)]
            path = os.path.join(folder, f"damaged-{os.path.basename(whole[codec])}")
            with open(whole[codec], "rb") as f:
                data, may_be_refused, whole_after = damage(f.read(), random.Random(seed))
            with open(path, "wb") as f:
                f.write(data)
            problem = ""
            with rig.Run(options.programs, path) as run:
                try:
                    code = run.wait(90)
                    result = run.result() if code in (0, 4) else {}
                    gone = {int(line.split("frame ")[1].split()[0]) for line in run.log().splitlines() if "is missing in" in line}
                    missing = len(gone)
                    after = FRAMES if whole_after is None else first_after(whole[codec], whole_after)
                    if code == 2 and may_be_refused and run.log().count("error: ") == 1:
                        found[codec].update(refused=1)
                    elif code not in (0, 4):
                        problem = f"exit code {code}"
                    elif [result[k] for k in ("lost", "repeated", "torn")] != [0, 0, 0]:
                        problem = str(result)
                    elif result["frames"] - missing < FRAMES // 4:
                        problem = f"only {result['frames'] - missing} pictures"
                    elif FRAMES - after > UNREPORTED and (result["frames"] <= after or max(gone, default=-1) >= result["frames"] - (FRAMES - after)):
                        problem = f"the file is whole from frame {after} on, but of {result['frames']} frames these are missing: {sorted(gone)}"
                    else:
                        found[codec].update(runs=1, frames=result["frames"], missing=missing, other_count=result["frames"] != FRAMES,
                                            deaths=run.log().count("ended this stage's process"))
                except AssertionError as e:
                    problem = str(e)
                if problem:
                    failures += 1
                    print(f"seed {seed} ({codec}): {problem}\n{run.log()}", flush=True)
                    if options.keep:
                        with open(os.path.join(options.keep, f"{seed}-{os.path.basename(path)}"), "wb") as f:
                            f.write(data)
        for codec, n in found.items():
            print(f"{codec:7} {n['runs']} runs, {n['frames']} frames, of which {n['missing']} are missing; {n['other_count']} runs had another number "
                  f"of frames than {FRAMES}; {n['refused']} files were refused; {n['deaths']} packets ended a process")
    print(f"{options.seeds} seeds from {first}: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
