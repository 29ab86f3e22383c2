#!/usr/bin/env python3
"""The bottleneck of a pipeline, stage by stage, from the reports of whole runs.

  tests/bench/what_limits.py build/release --device cuda:0 [--frames 4000] [--runs 3] [pipelines/demo.toml ...] [-- --set KEY=VALUE ...]

A table per pipeline: for each stage the share of the time in which it had a frame in work, waited for its input, for a free output slot and for
its own frames (see shared/telemetry/busy_time.hpp), and the sentence that `carousel top` would show. The run whose rate
is the median of the runs is shown. Arguments after `--` are passed to `carousel run`. Python's own library only."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def report(a, file, more):
    with tempfile.TemporaryDirectory(prefix="what-limits-") as folder:
        path = os.path.join(folder, "report.json")
        command = [os.path.join(a.build, "carousel"), "run", file, "--device", a.device, "--frames", str(a.frames), "--out", "",
                   "--no-color", "--report", path, *more]
        done = subprocess.run(command, env={**os.environ, "XDG_RUNTIME_DIR": folder, "CAROUSEL_LOG": "warning"}, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def table(name, r):
    lines = [f"{name}: {r['frames']} frames, {r['frames_per_second']:.1f} frames/s; {r['bottleneck']['text']}", "",
             "| stage | busy | waits for input | for room behind | for its own frames | latency p50, ms |", "|---|---|---|---|---|---|"]
    for s in r["stages"]:
        shares = " | ".join("-" if s[k] is None else f"{100 * s[k]:.0f} %" for k in ("busy", "wait_input", "wait_output", "wait_own"))
        lines.append(f"| {s['name']} | {shares} | {s['latency_ms']['p50']:.2f} |")
    return "\n".join(lines)


def main():
    words = sys.argv[1:]
    more = words[words.index("--") + 1:] if "--" in words else []
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("pipelines", nargs="*", default=[os.path.join(ROOT, "pipelines", n) for n in ("demo.toml", "fanout.toml")])
    p.add_argument("--device", default="cpu")
    p.add_argument("--frames", type=int, default=4000)
    p.add_argument("--runs", type=int, default=3)
    a = p.parse_intermixed_args(words[:words.index("--")] if "--" in words else words)
    for file in a.pipelines:
        runs = sorted((report(a, file, more) for _ in range(a.runs)), key=lambda r: r["frames_per_second"])
        print(table(" ".join([os.path.relpath(file, ROOT), *more]), runs[len(runs) // 2]), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
