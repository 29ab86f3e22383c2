#!/usr/bin/env python3
"""The additional cost of a stage in Python compared with the same stage in C++: cost.py BUILD --device
cpu|cuda:0 --stage copy_numpy.py

source -> middle -> sink, the middle a copy in C++ (carousel-test-copy) or in Python, in turns. Small pictures, so that the host
limits. Two figures a round: us per frame of the whole pipeline, and the median from claim to commit in the middle.
--steady S: us per frame over S seconds behind the first 200 frames, so without the start and what is imported in it; no hashes then.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

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


def steady(a, folder, middle):
    """us per frame of a continuing run, by `carousel ps`: frames and the run's own clock at both ends of the
    span."""
    file = os.path.join(folder, "cost.toml")
    with open(file, "w") as out:
        out.write(TEXT.format(pid=os.getpid(), device=a.device, build=a.build, middle=middle))
    program = os.path.join(a.build, "carousel")
    name = f"cost-{os.getpid()}"

    def seen():
        done = subprocess.run([program, "ps", "-p", name, "--json"], capture_output=True, text=True)
        return json.loads(done.stdout)["pipeline"] if done.returncode == 0 else {"frames": 0, "uptime_s": 0}

    with open(os.path.join(folder, "log"), "w+") as log:
        run = subprocess.Popen([program, "run", file, "--no-color"], stdout=log, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + 90
            while seen()["frames"] < 200:
                if run.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise SystemExit(f"{middle}: no 200 frames\n{log.read()[-2000:]}")
                time.sleep(0.1)
            first = seen()
            time.sleep(a.steady)
            last = seen()
        finally:
            run.send_signal(signal.SIGINT)
            if run.wait(60) != 0:
                log.seek(0)
                raise SystemExit(f"{middle}: exit code {run.returncode}\n{log.read()[-2000:]}")
    return 1e6 * (last["uptime_s"] - first["uptime_s"]) / (last["frames"] - first["frames"])


def compare_steady(a, stages):
    seen = {name: [] for name in stages}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(a.rounds):
            for name, middle in stages.items():
                seen[name].append(steady(a, folder, middle))
    print(f"us per frame over {a.steady:g} s behind the first 200 frames, {a.rounds} rounds in turns, {a.device}: median (least to most)")
    for name, each in seen.items():
        print(f"{name:14} {statistics.median(each):8.1f} ({min(each):.1f} to {max(each):.1f})")
    print(f"{'difference':14} {statistics.median(seen['Python']) - statistics.median(seen['C++']):8.1f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("--device", default="cpu")
    p.add_argument("--stage", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "copy_numpy.py"))
    p.add_argument("--frames", type=int, default=20000), p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steady", type=float, default=0, help="seconds")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    stages = {"C++": f"{a.build}/carousel-test-copy", "Python": os.path.abspath(a.stage)}
    if a.steady > 0:
        return compare_steady(a, stages)
    seen = {"C++": [], "Python": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(a.rounds):
            hashes = set()
            for name, middle in stages.items():
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
    return None


main()
