#!/usr/bin/env python3
"""How many of a paced pipeline's frames a reader of the newest frame gets on busy cores: a count for each number of busy loops.

  latest_port.py BUILD [--fps 50] [--seconds 10] [--loops 0,2,4] [--stage ""] [--device cpu]

A frame stays for a late reader until the next one exists, so that all of them should be received. BUILD has the Python module."""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stages", "python"))
import interpreter  # noqa: E402


def poll(a, loops):
    """Frames that were got, of how many, and the longest pause between two in ms."""
    pipeline = carousel.Pipeline(os.path.join(HERE, "..", "..", "pipelines", "demo.toml"))
    options = ["--size", "320x180", "--set", "geometry.triangles=2000", "--out", ""]
    with pipeline.start(device=a.device, fps=a.fps, name="latest-port", options=options) as run:
        newest = run.open(wait_s=30.0).latest(a.stage)
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
        try:
            numbers, longest = [newest.next(30.0).frame_number], 0.0
            last = time.monotonic()
            until = last + a.seconds
            while last < until:
                frame, now = newest.next(5.0), time.monotonic()
                if frame is None:
                    raise SystemExit(f"no frame in 5 s: {run.log_text(20)}")
                numbers.append(frame.frame_number)
                longest, last = max(longest, now - last), now
        finally:
            for each in busy:
                each.kill()
                each.wait()
    return len(numbers), numbers[-1] - numbers[0] + 1, 1000 * longest


def main(a):
    print("| busy loops | frames got | of | longest pause |\n|---|---|---|---|")
    for loops in map(int, a.loops.split(",")):
        got, of, longest = poll(a, loops)
        print(f"| {loops} | {got} | {of} | {longest:.1f} ms |", flush=True)


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build")
    words.add_argument("--fps", type=float, default=50)
    words.add_argument("--seconds", type=float, default=10)
    words.add_argument("--loops", default="0,2,4")
    words.add_argument("--stage", default="", help="whose output; the last sink's input where none is named")
    words.add_argument("--device", default="cpu")
    arguments = words.parse_args()
    interpreter.use(arguments.build)
    import carousel
    main(arguments)
