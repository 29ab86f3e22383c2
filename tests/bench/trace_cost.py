#!/usr/bin/env python3
"""The cost of `carousel trace`: switched on compared with off, and off compared with a build without the code.

  tests/bench/trace_cost.py build/release [--device cuda:0] [--pairs 40] [--seconds 1] [--runs 3] [--without build/without-trace]

On and off are compared within a run: it is traced for a while and not traced for as long, in turn, so that other load
on the machine affects both alike. Each pair of neighbours gives one ratio of frames/s; the table shows their median and the interval
that holds the true median with 95 % (by the ranks of a binomial distribution: no assumption on how they are spread).

Off compared with a build without the code: a run of each, and in turn one of them is paused (`carousel stop` of its last stage) while the other
one is measured. `--without` is a build folder made from the same tree with
  cmake -B build/without-trace -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-DCAROUSEL_WITHOUT_TRACE
(the stamps and the check of the flag are compiled out).
Python's own library only."""
import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

STAMPS_LAST = 3.3  # seconds: the lease of pipelines/trace/tracer.cpp, renewed by its last request: stages continue to record stamps for this time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class running:
    """One run of the pipeline, until the end of the `with`."""

    def __init__(self, a, programs, folder, name="trace-cost"):
        self.a, self.folder, self.program, self.name = a, folder, os.path.join(programs, "carousel"), name
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "CAROUSEL_LOG": "warning"}

    def __enter__(self):
        a = self.a
        command = [self.program, "run", a.pipeline, "--out", "", "--no-color", "--name", self.name]
        if a.device: command += ["--device", a.device]
        if a.size: command += ["--size", a.size]
        for s in a.set: command += ["--set", s]
        self.run = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 60
            while not ((stages := self.stages()) and all(s["state"] == "running" and s["frames"] > 20 for s in stages)):
                if self.run.poll() is not None or time.monotonic() > until:
                    sys.exit(f"the pipeline does not run: {' '.join(command)}")
                time.sleep(0.05)
            time.sleep(a.warm)
            return self
        except BaseException:  # also Ctrl-C: __exit__ is not called then
            end(self.run)
            raise

    def __exit__(self, *_):
        end(self.run)

    def stages(self):
        p = subprocess.run([self.program, "ps", "-p", self.name, "--json"], env=self.environment, capture_output=True, text=True, check=False)
        try:
            return json.loads(p.stdout)["stages"]
        except (ValueError, KeyError):
            return []

    def frames(self):
        for _ in range(50):
            if stages := self.stages(): return time.monotonic(), stages[-1]["frames"]
            if self.run.poll() is not None: break
            time.sleep(0.1)
        sys.exit("the pipeline has ended in the middle of the measurement")

    def rate(self):
        """Frames/s over --seconds."""
        t0, n0 = self.frames()
        time.sleep(self.a.seconds)
        t1, n1 = self.frames()
        return (n1 - n0) / (t1 - t0)

    def signal_stages(self, word):
        """stop: the last stage takes no frame, and soon no stage works; cont."""
        self.last = getattr(self, "last", None) or self.stages()[-1]["name"]
        subprocess.run([self.program, word, self.last, "-p", self.name], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def rate_alone(self):
        """Of a run that is paused otherwise."""
        self.signal_stages("cont")
        time.sleep(0.3)
        rate = self.rate()
        self.signal_stages("stop")
        time.sleep(0.2)
        return rate

    def rate_traced(self):
        path = os.path.join(self.folder, "trace.json")
        trace = subprocess.Popen([self.program, "trace", path, "-p", self.name, "--seconds", str(self.a.seconds + 30)], env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.3)  # until it has switched the stamps on
            rate = self.rate()
        finally:
            end(trace)       # it writes its file now, after the measurement
            quiet = time.monotonic() + STAMPS_LAST
        with open(path, encoding="utf-8") as f:
            other = json.load(f)["otherData"]
        os.unlink(path)
        if other["frames"] < 0.95 * rate * self.a.seconds or other["missing_bars"] or other["records_overwritten"]:
            sys.exit(f"the trace is not whole, and would be too cheap: {other}")
        time.sleep(max(0.0, quiet - time.monotonic()))
        return rate


def end(process):
    if process.poll() is not None: return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def interval(values):
    """Ranks between which the median lies with 95 %: least k with P(Binomial(n, 1/2) < k) > 2.5 %."""
    values, n = sorted(values), len(values)
    total, k = 0.0, 0
    while total + math.comb(n, k) / 2**n <= 0.025:
        total += math.comb(n, k) / 2**n
        k += 1
    low = max(0, k - 1)
    return values[low], values[n - 1 - low]


def line(name, first, second):
    ratios = [b / a - 1 for a, b in zip(first, second)]
    low, high = interval(ratios)
    print(f"{name:<34}{len(ratios):>6}{statistics.median(first):>11.1f}{statistics.median(second):>11.1f}{statistics.median(ratios):>+10.2%}   {low:+.2%} to {high:+.2%}", flush=True)
    return {"first": first, "second": second, "median": statistics.median(ratios), "low": low, "high": high}


def in_turn(k, first, second):
    """(first(), second()), with alternating order."""
    if k % 2 == 0: return first(), second()
    b = second()
    return first(), b


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", help="folder of the programs")
    p.add_argument("--without", help="folder of programs built without the trace")
    p.add_argument("--pipeline", default=os.path.join(ROOT, "pipelines", "demo.toml"))
    p.add_argument("--device", default="")
    p.add_argument("--size", default="")
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--pairs", type=int, default=40, help="of neighbouring measurements, in all")
    p.add_argument("--runs", type=int, default=3, help="over which they are spread")
    p.add_argument("--seconds", type=float, default=1, help="measured each time")
    p.add_argument("--warm", type=float, default=1, help="before the first")
    p.add_argument("--json", help="write the samples to this file")
    a = p.parse_args()
    if a.pairs < 6: p.error("--pairs: 6 at least, or there is no interval of 95 %")
    result = {"pipeline": a.pipeline, "device": a.device or "auto", "seconds": a.seconds}
    print(f"{'':<34}{'pairs':>6}{'first':>11}{'second':>11}{'change':>10}   95 %", flush=True)
    with tempfile.TemporaryDirectory(prefix="carousel-trace-cost-") as folder:
        pairs = []
        for r in range(a.runs):
            with running(a, a.programs, folder) as run:
                while len(pairs) < a.pairs * (r + 1) // a.runs:
                    pairs.append(in_turn(len(pairs), run.rate, run.rate_traced))
        result["on"] = line("off, on: frames/s", *zip(*pairs))
        if a.without:
            pairs = []
            for r in range(a.runs):
                with running(a, a.without, folder, "without") as without:
                    without.signal_stages("stop")
                    with running(a, a.programs, folder, "off") as off:
                        off.signal_stages("stop")
                        while len(pairs) < a.pairs * (r + 1) // a.runs:
                            pairs.append(in_turn(len(pairs), without.rate_alone, off.rate_alone))
                        without.signal_stages("cont")  # both end by themselves
                        off.signal_stages("cont")
            result["off"] = line("without the code, off: frames/s", *zip(*pairs))
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
