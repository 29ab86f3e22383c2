#!/usr/bin/env python3
"""What `carousel trace` costs: frames/s of a pipeline while nobody traces, while somebody does, and of a build without the code.

  tests/bench/trace_cost.py build/release [--device cuda:0] [--rounds 5] [--seconds 4] [--without build/without-trace] [--json FILE]

Each round runs the same pipeline once in each way, in turn, and reads how many frames its last stage has committed between two moments
at which it runs steadily. `--without` is a build folder made from the same tree with
  cmake -B build/without-trace -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-DCAROUSEL_WITHOUT_TRACE
(the stamps and the look at the flag are compiled out).
Prints a table (median and spread of frames/s, difference to the first row) and, with --json, writes all samples.
Only python3 is needed.
"""
import argparse, json, os, signal, statistics, subprocess, sys, tempfile, time


class bench:
    def __init__(self, a):
        self.a = a
        self.folder = tempfile.TemporaryDirectory(prefix="carousel-trace-cost-")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "CAROUSEL_LOG": "warning"}

    def ps(self, programs):
        p = subprocess.run([os.path.join(programs, "carousel"), "ps", "--json"], env=self.environment, capture_output=True, text=True)
        try:
            return json.loads(p.stdout)["stages"]
        except (ValueError, KeyError):
            return []

    def frames(self, programs):
        stages = self.ps(programs)
        return (time.monotonic(), stages[-1]["frames"]) if stages else (time.monotonic(), 0)

    def sample(self, programs, traced):
        """Frames/s of one run."""
        a = self.a
        command = [os.path.join(programs, "carousel"), "run", a.pipeline, "--out", "", "--no-color", "--name", "trace-cost"]
        if a.device: command += ["--device", a.device]
        if a.size: command += ["--size", a.size]
        for s in a.set: command += ["--set", s]
        run = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        trace = None
        try:
            until = time.monotonic() + 60
            while not ((stages := self.ps(programs)) and all(s["state"] == "running" and s["frames"] > 20 for s in stages)):
                if run.poll() is not None or time.monotonic() > until:
                    sys.exit(f"the pipeline does not run: {' '.join(command)}")
                time.sleep(0.05)
            if traced:
                trace = subprocess.Popen([os.path.join(programs, "carousel"), "trace", os.path.join(self.folder.name, "trace.json"), "--seconds",
                                          str(a.seconds + 2 * a.warm + 5)], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            time.sleep(a.warm)
            t0, n0 = self.frames(programs)
            time.sleep(a.seconds)
            t1, n1 = self.frames(programs)
            if trace:
                trace.send_signal(signal.SIGINT)  # the file is written behind the measurement
                out, _ = trace.communicate(timeout=120)
                self.check(os.path.join(self.folder.name, "trace.json"))
            return (n1 - n0) / (t1 - t0)
        finally:
            for process in (trace, run):
                if process and process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    try:
                        process.wait(30)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()

    @staticmethod
    def check(path):
        """A trace that lacks frames would be cheap."""
        with open(path, encoding="utf-8") as f:
            other = json.load(f)["otherData"]
        os.unlink(path)
        if other["frames"] < 100 or other["missing_bars"] or other["records_overwritten"]:
            print(f"warning: the trace is not whole: {other}", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    p.add_argument("programs", help="folder of the programs")
    p.add_argument("--without", help="folder of programs built without the trace")
    p.add_argument("--pipeline", default=os.path.join(root, "pipelines", "demo.toml"))
    p.add_argument("--device", default="")
    p.add_argument("--size", default="")
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=4, help="measured in each run")
    p.add_argument("--warm", type=float, default=1, help="before that")
    p.add_argument("--json", help="write the samples to this file")
    a = p.parse_args()
    b = bench(a)
    ways = [("off", a.programs, False), ("on", a.programs, True)]
    if a.without: ways.insert(0, ("without the code", a.without, False))
    samples = {name: [] for name, _, _ in ways}
    for k in range(a.rounds):
        for name, programs, traced in ways[k % len(ways):] + ways[:k % len(ways)]:  # nobody is always first
            samples[name].append(b.sample(programs, traced))
            print(f"round {k + 1}/{a.rounds} {name}: {samples[name][-1]:.1f} frames/s", file=sys.stderr, flush=True)
    base = statistics.median(samples[ways[0][0]])
    result = {"pipeline": a.pipeline, "device": a.device or "auto", "rounds": a.rounds, "seconds": a.seconds, "ways": {}}
    print(f"{'trace':<18}{'frames/s':>10}{'least':>10}{'most':>10}{'spread':>9}{'to ' + ways[0][0]:>22}")
    for name, _, _ in ways:
        s, m = samples[name], statistics.median(samples[name])
        spread = (max(s) - min(s)) / m
        result["ways"][name] = {"samples": s, "median": m, "spread": spread, "change": m / base - 1}
        print(f"{name:<18}{m:>10.1f}{min(s):>10.1f}{max(s):>10.1f}{spread:>8.1%}{m / base - 1:>+22.2%}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
