"""A run that outlives its GPU: stages of the demo move to the CPU and back, under load. Prints a table of the times.

  stages   per stage --rounds losses of its GPU (`carousel inject STAGE --fault gpu-lost`) and returns (`carousel device cuda:0`); the
           stage moves alone. The stages' runs are concurrent, one run per stage
  run      --run-rounds losses of the GPU of all processes at once, by each CUDA error of ERRORS in turn, and returns of all stages

After each part the hash of all pictures is that of an undisturbed run on the GPU, and nothing is lost, repeated or torn. The times are
those from the first error (or from the request) to the next frame of the sink.

fallback_gpu.py PROGRAMS [--parts stages,run] [--rounds 20] [--run-rounds 10] [--fps 400] [--size 1280x720] [--triangles 100000]
                [--device cuda:0] [--verbose]

About 130 s on an H200. With --device cpu the GPU is simulated, which shows that this program works. Exit code 77: no GPU."""
import argparse
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import end_process, require_gpu, wait_for  # noqa: E402

DEMO = os.path.join(HERE, "..", "..", "pipelines", "demo.toml")
STAGES = ("geometry", "vertex", "fragment", "display")
# devices unavailable, no device, uncorrectable ECC error, out of memory, illegal address, unknown
ERRORS = (46, 100, 214, 2, 700, 999)
PATIENCE_S = 60


class Run:
    """A run of the demo in a folder of its own. `keys`: what moves, and when."""

    def __init__(self, a, name, keys, frames=0):
        self.a, self.folder, self.name = a, os.path.join(a.folder, name), name
        os.mkdir(self.folder, 0o700)
        self.failure = os.path.join(self.folder, "gpu")
        self.fails_with(0)
        self.report_file, self.log_file = os.path.join(self.folder, "report.json"), os.path.join(self.folder, "log")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "CAROUSEL_TEST_GPU_FAILURE": self.failure}
        if a.simulated:
            self.environment["CAROUSEL_TEST_GPU_ON_CPU"] = "1"
        words = ["run", DEMO, "--no-color", "--report", self.report_file, "--device", "cuda:0", "--size", a.size, "--out", "",
                 "--set", f"geometry.triangles={a.triangles}", *(w for key in keys for w in ("--set", key))]
        words += ["--frames", str(frames)] if frames else ["--fps", str(a.fps)]
        with open(self.log_file, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([a.carousel, *words], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def fails_with(self, error):
        with open(self.failure, "r+b" if os.path.exists(self.failure) else "w+b") as f:
            f.write(struct.pack("i", error))

    def log_text(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as f:
            return f.read()

    def carousel(self, *words):
        return subprocess.run([self.a.carousel, *words], env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def pipeline(self):
        assert self.process.poll() is None, f"{self.name}: the run has ended with {self.process.returncode}\n{self.log_text()[-4000:]}"
        answer = self.carousel("ps", "--json")
        return json.loads(answer.stdout) if answer.returncode in (0, 1) and answer.stdout else None

    def settled(self, on_cpu):
        """Waits until these stages are on the CPU, all stages run, and the sink has had 20 more frames."""
        def there():
            found = self.pipeline()
            if not found or found["pipeline"]["state"] == "rebuilding" or any(s["state"] != "running" for s in found["stages"]):
                return None
            return found if found["pipeline"]["fallback"]["stages"] == on_cpu else None
        frames = wait_for(f"{self.name}: {', '.join(on_cpu) or 'no stage'} on the CPU", there, PATIENCE_S)["pipeline"]["frames"]

        def moves():
            found = there()
            return found and found["pipeline"]["frames"] >= frames + 20
        wait_for(f"{self.name}: frames", moves, PATIENCE_S)

    def returned(self):
        answer = self.carousel("device", "cuda:0")
        assert answer.returncode == 0, answer.stderr
        self.settled([])

    def end(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        assert code == 0, f"{self.name}: exit code {code}\n{self.log_text()[-4000:]}"
        return self.report()

    def report(self):
        with open(self.report_file, encoding="utf-8") as f:
            r = json.load(f)
        assert (r["lost"], r["repeated"], r["torn"]) == (0, 0, 0), (self.name, r["lost"], r["repeated"], r["torn"])
        return r

    def close(self):
        end_process(self.process)


def undisturbed_hash(a, frames):
    run = Run(a, f"calm-{time.monotonic_ns()}", [], frames)
    try:
        assert run.process.wait(120) == 0, run.log_text()[-4000:]
        return run.report()["image_hash"]
    finally:
        run.close()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def row(a, name, report, expected):
    """Prints the times of one run; its hash must be the one of an undisturbed run."""
    changes = report["fallback"]["changes"]
    assert sum(c["to"] == "cpu" for c in changes) == expected, (name, len(changes), expected)
    times = {to: [c["next_frame_ms"] for c in changes if c["to"] == to and c["next_frame_ms"] is not None] for to in ("cpu", "cuda:0")}
    same = report["image_hash"] == undisturbed_hash(a, report["frames"])
    shown = "".join(f"{statistics.median(t):>10.0f}{percentile(t, 0.95):>8.0f}" for t in (times["cpu"], times["cuda:0"]))
    print(f"{name:<10}{expected:>7}{shown}{report['frames']:>10}{report['lost']:>6}{report['repeated']:>10}{report['torn']:>6}   "
          f"{'equal' if same else 'OTHER PICTURES'}", flush=True)
    return same


def lose_stage(a, stage, reports, failed):
    run = None
    try:
        run = Run(a, stage, [f"{stage}.fallback=cpu"])
        run.settled([])
        for k in range(a.rounds):
            answer = run.carousel("inject", stage, "--fault", "gpu-lost")
            assert answer.returncode == 0, answer.stderr
            run.settled([stage])
            run.returned()
            if a.verbose:
                print(f"{stage}: round {k + 1}", file=sys.stderr, flush=True)
        reports[stage] = run.end()
    except BaseException as e:  # pylint: disable=broad-exception-caught
        failed.append(f"{stage}: {e!r}\n{run.log_text()[-3000:] if run else ''}")
    finally:
        if run:
            run.close()


def lose_stages(a):
    reports, failed = {}, []
    threads = [threading.Thread(target=lose_stage, args=(a, stage, reports, failed)) for stage in STAGES]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, "\n".join(failed)
    return all([row(a, stage, reports[stage], a.rounds) for stage in STAGES])


def lose_run(a):
    run = Run(a, "run", ["fallback=cpu", "fallback_after=1"])
    try:
        run.settled([])
        for k in range(a.run_rounds):
            run.fails_with(ERRORS[k % len(ERRORS)])
            run.settled(list(STAGES))
            run.fails_with(0)
            run.returned()
            if a.verbose:
                print(f"run: round {k + 1}, error {ERRORS[k % len(ERRORS)]}", file=sys.stderr, flush=True)
        return row(a, "run", run.end(), a.run_rounds)
    finally:
        if a.verbose:
            print(run.log_text()[-6000:], file=sys.stderr)
        run.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--parts", default="stages,run")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--run-rounds", type=int, default=10)
    p.add_argument("--fps", type=float, default=400)
    p.add_argument("--size", default="1280x720")
    p.add_argument("--triangles", type=int, default=100000)
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    a.programs, a.simulated = os.path.abspath(a.programs), a.device == "cpu"
    a.carousel = os.path.join(a.programs, "carousel")
    require_gpu(a.device)
    begun, well = time.monotonic(), True
    with tempfile.TemporaryDirectory() as a.folder:
        print(f"{'moves':<10}{'rounds':>7}{'to CPU ms':>10}{'p95':>8}{'to GPU ms':>10}{'p95':>8}{'frames':>10}{'lost':>6}{'repeated':>10}"
              f"{'torn':>6}   pictures", flush=True)
        for part in a.parts.split(","):
            well = {"stages": lose_stages, "run": lose_run}[part](a) and well
    print(f"{time.monotonic() - begun:.0f} s", flush=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
