#!/usr/bin/env python3
"""What a stage in Python costs over the same stage in C++: cost.py BUILD --device cpu|cuda:0 --stage copy_numpy.py

source -> middle -> sink, the middle a copy in C++ (carousel-test-copy) or in Python, in turns. Small pictures, so that the host
limits. Two figures a round: us per frame of the whole pipeline, and the median from claim to commit in the middle.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

TEXT = """[pipeline]
name = "cost-{pid}"
size = [64, 64]
device = "{device}"
[[stage]]
name = "source"
run = "{build}/carousel-test-copy"
[[stage]]
name = "middle"
run = "{middle}"
inputs = ["source"]
standby = false
[[stage]]
name = "sink"
run = "{build}/carousel-test-copy"
inputs = ["middle"]
sink = true
"""


def run(a, folder, middle, frames):
    file, report = os.path.join(folder, "cost.toml"), os.path.join(folder, "report.json")
    with open(file, "w") as out:
        out.write(TEXT.format(pid=os.getpid(), device=a.device, build=a.build, middle=middle))
    words = [os.path.join(a.build, "carousel"), "run", file, "--frames", str(frames), "--report", report, "--no-color"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"{middle}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    got = json.load(open(report))
    stage = next(s for s in got["stages"] if s["name"] == "middle")
    return 1e6 / got["frames_per_second"], stage["latency_ms"]["p50"] * 1000, got["image_hash"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("--device", default="cpu")
    p.add_argument("--stage", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "copy_numpy.py"))
    p.add_argument("--frames", type=int, default=20000), p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    seen = {"C++": [], "Python": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(a.rounds):
            hashes = set()
            for name, middle in (("C++", f"{a.build}/carousel-test-copy"), ("Python", os.path.abspath(a.stage))):
                per_frame, latency, image_hash = run(a, folder, middle, a.frames)
                seen[name].append((per_frame, latency))
                hashes.add(image_hash)
            if len(hashes) != 1:
                raise SystemExit(f"the two wrote different frames: {hashes}")
    median = {name: [statistics.median(v[k] for v in rounds) for k in (0, 1)] for name, rounds in seen.items()}
    print(f"{'us per frame':14} {'whole run':>10} {'claim to commit':>16}   (medians of {a.rounds}, {a.frames} frames each, {a.device})")
    for name, (whole, latency) in median.items():
        print(f"{name:14} {whole:10.1f} {latency:16.1f}")
    print(f"{'difference':14} {median['Python'][0] - median['C++'][0]:10.1f} {median['Python'][1] - median['C++'][1]:16.1f}")


main()
