"""Standbys of an MPS domain: how long a run stands still after a death, and whether it stays whole.

  times    per way of dying --rounds deaths of the demo under MPS with standbys: the pause of the sink that begins within 20 ms (its
           median has an aim), and the longest pause after it within a second (the old processes end, new standbys start); kill
           (one stage, SIGKILL), all (all stages), carousel (carousel kill), server (the MPS server), daemon, fault (an illegal
           address). On a GPU a median above its aim fails; so does a death without a takeover by standbys
  endless  the same after SIGKILL and `carousel kill` of a stage whose kernel never ends (carousel-test-device), --endless-rounds runs each;
           the pause is printed and has no aim
  soak     --seconds with a kill every 5 s, of all ways but fault in turn: nothing lost, memory flat
  chaos    60 random faults, one per second (`carousel chaos`)
  bench    `carousel bench pipeline --modes mps` with standbys and without, with --against another build

failover_gpu.py PROGRAMS [--parts times,endless,soak,chaos,bench] [--ways kill,all,...] [--rounds 20] [--endless-rounds 3] [--seconds 480]
                [--device cuda:0] [--fps 0] [--against FOLDER] [--bench-rounds 5] [--seed 60] [--verbose]

About 25 s per way with 20 rounds, 10 s per endless kernel. With --device cpu the domains are those of tests' fake daemon, which shows that this program
works. Exit code 77 with the reason: no GPU, or no MPS."""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import children_of, end_process, require_gpu, skip, wait_for  # noqa: E402

DEMO = os.path.join(HERE, "..", "..", "pipelines", "demo.toml")
FAKE = os.path.join(HERE, "..", "pipelines", "supervisor", "mps", "fake_mps", "nvidia-cuda-mps-control")
STAGES = ("geometry", "vertex", "fragment", "display")
PAUSE_S = {"fault": 3.0}   # how long the sink is watched after a death, by its way: 1 s, or as long as the driver may take
AT_DEATH_MS = 20
LONG_MS = 400   # a pause without a takeover by standbys
AIMS_MS = {"kill": 5, "all": 10, "fault": 160}   # medians, on an H100 or H200; 145 ms of a fault are the driver's
JOINT = ("kill", "all", "carousel", "server", "endless")   # ways after which every stage's standby must take over
DIES_AT = 1600   # 8 s at 200 frames per second, so that all standbys are ready
ENDLESS = """[pipeline]
name = "endless"
size = [16, 16]
device = "{device}"
isolation = "mps"
fps = 200
frame_timeout_ms = 20000
[[stage]]
name = "numbers"
run = "{programs}/carousel-test-device"
standby = true
[[stage]]
name = "middle"
run = "{programs}/carousel-test-device"
inputs = ["numbers"]
standby = true
die_at = {dies_at}
die_how = "endless"
[[stage]]
name = "sink"
run = "{programs}/carousel-test-device"
inputs = ["middle"]
sink = true
standby = true
"""


def standbys(kept):
    return [word for stage in STAGES for word in ("--set", f"{stage}.standby={kept}")]


class Run:
    """A run in a folder of its own: of the demo, or of the file `other`. Ends with its `with`; an error prints its log."""

    def __init__(self, a, name, other=None):
        self.a, self.folder = a, os.path.join(a.folder, name)
        os.mkdir(self.folder, 0o700)
        self.report_file, self.log_file = os.path.join(self.folder, "report.json"), os.path.join(self.folder, "log")
        self.stages = STAGES if other is None else ("numbers", "middle", "sink")
        self.ledger = os.path.join(self.folder, "carousel", "demo" if other is None else "endless", f"ledger-{self.stages[-1]}.bin")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, **a.environment}
        words = ["run", other or DEMO, "--no-color", "--report", self.report_file]
        if other is None:
            words += ["--device", a.device, "--size", a.size, "--out", "", "--set", "isolation=mps", "--set",
                      f"geometry.triangles={a.triangles}", *standbys("true")]
        if other is None and a.fps > 0:
            words += ["--fps", str(a.fps)]
        with open(self.log_file, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([a.carousel, *words], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        end_process(self.process)
        if kind is not None:
            print(self.log_text()[-4000:])

    def log_text(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as f:
            return f.read()

    def carousel(self, *words):
        return subprocess.run([self.a.carousel, *words], env=self.environment, capture_output=True, text=True, timeout=30, check=False)

    def ps(self):
        assert self.process.poll() is None, f"the run has ended with {self.process.returncode}\n{self.log_text()[-4000:]}"
        answer = self.carousel("ps", "--json")
        return json.loads(answer.stdout) if answer.returncode == 0 and answer.stdout else None

    def ready(self):
        """The answer of ps, once every stage runs and has a standby."""
        def whole():
            found = self.ps()
            rows = found["stages"] if found else []
            return found if len(rows) == len(self.stages) and all(r["state"] == "running" and r.get("standby") == "ready" for r in rows) else None
        return wait_for("a standby of every stage", whole, 60)

    def delivered(self):
        try:
            return os.stat(self.ledger).st_size
        except FileNotFoundError:
            return 0

    def pauses_ms(self, begun, stop):
        """Each pause of more than 1 ms without a new record of the sink: when it began, and its length."""
        last, at, found = self.delivered(), begun, []
        while (now := time.monotonic()) < stop:
            size = self.delivered()
            if size != last:
                found.append((at, now))
                last, at = size, now
        found.append((at, time.monotonic()))
        return [((a - begun) * 1e3, (b - a) * 1e3) for a, b in found if b - a > 0.001]

    def server(self, daemon):
        if self.a.device == "cpu":
            return children_of(daemon)[0]
        with open(f"/proc/{daemon}/environ", encoding="utf-8") as f:
            pipe = dict(w.split("=", 1) for w in f.read().split("\0") if "=" in w)["CUDA_MPS_PIPE_DIRECTORY"]
        answer = subprocess.run(["nvidia-cuda-mps-control"], input="get_server_list\n", capture_output=True, text=True, timeout=10,
                                env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": pipe}, check=True)
        return int(answer.stdout.split()[0])

    def wait_until_stuck(self):
        """Waits until the sink has delivered nothing for 0.2 s."""
        known = [0, time.monotonic()]

        def is_stuck():
            if (size := self.delivered()) != known[0]:
                known[:] = [size, time.monotonic()]
            return time.monotonic() - known[1] > 0.2
        return wait_for("a kernel that does not end", is_stuck, 60)

    def die(self, way, victim, ps):
        pids = {r["name"]: r["pid"] for r in ps["stages"]}
        daemon = ps["pipeline"]["mps"]["daemon_pid"]
        if way == "kill":
            os.kill(pids[victim], signal.SIGKILL)
        elif way == "all":
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
        elif way in ("server", "daemon"):
            os.kill(self.server(daemon) if way == "server" else daemon, signal.SIGKILL)
        else:
            words = ("kill", victim) if way == "carousel" else ("inject", victim, "--fault", "gpu-fault")
            done = self.carousel(*words)
            assert done.returncode == 0, done.stderr

    def round(self, way, victim):
        """One death; returns the pause at the death, and the longest one after it."""
        ps, found = self.ready(), []
        if victim == "middle":
            self.wait_until_stuck()
        begun = time.monotonic()
        watcher = threading.Thread(target=lambda: found.extend(self.pauses_ms(begun, begun + PAUSE_S.get(way, 1.0))))
        watcher.start()
        self.die(way, victim, ps)
        watcher.join()
        if self.a.verbose:
            print(f"{way} of {victim}: " + ", ".join(f"{length:.1f} ms at {at:.1f}" for at, length in found), flush=True)
        first = max((f for f in found if f[0] < AT_DEATH_MS), key=lambda f: f[1], default=(0, 0))
        return first[1], max((f[1] for f in found if f[0] > first[0]), default=0)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        with open(self.report_file, encoding="utf-8") as f:
            report = json.load(f)
        whole = code in (0, 130) and not report["lost"] and not report["repeated"] and not report["torn"]
        if not whole:
            print(self.log_text()[-4000:])
        return report, whole


def is_joint(way, report):
    missed = sum(report["standby_missed"].values())
    if way not in JOINT or (report["standby_takeovers"] > 0 and missed == 0):
        return True
    print(f"{way}: {report['standby_takeovers']} takeovers by standbys, {missed} deaths without one: {report['standby_missed']}")
    return False


def is_in_time(a, way, pauses):
    aim = AIMS_MS.get(way)
    if a.device == "cpu" or aim is None or statistics.median(pauses) <= aim:
        return True
    print(f"{way}: the median of {statistics.median(pauses):.2f} ms is above the aim of {aim} ms")
    return False


def times(a):
    good, rows = True, []
    for way in a.ways.split(","):
        with Run(a, way) as run:
            pauses, later = zip(*[run.round(way, STAGES[k % len(STAGES)]) for k in range(a.rounds)])
            report, whole = run.end()
            if a.verbose and max(pauses) > LONG_MS:
                print(run.log_text()[-8000:], report["standby_missed"], flush=True)
        good = whole and is_joint(way, report) and is_in_time(a, way, pauses) and good
        missed = sum(report["standby_missed"].values())
        rows.append(f"{way:10} {len(pauses):3} {statistics.median(pauses):9.2f} {AIMS_MS.get(way, '-'):>6} {min(pauses):8.2f} {max(pauses):8.2f} "
                    f"{statistics.median(later):8.2f} {max(later):8.2f} {report['mps']['domain_faults']:7} {report['standby_takeovers']:9} "
                    f"{missed:6} {report['lost']:5} {report['repeated']:8} {report['torn']:5}")
    print(f"{'way':10} {'n':>3} {'median ms':>9} {'aim':>6} {'min':>8} {'max':>8} {'later':>8} {'max':>8} {'domains':>7} {'takeovers':>9} "
          f"{'missed':>6} {'lost':>5} {'repeated':>8} {'torn':>5}")
    print("\n".join(rows), flush=True)
    return good


def endless(a):
    if a.device == "cpu":
        print("endless: not on a CPU")
        return True
    good = True
    for way in ("kill", "carousel"):
        for k in range(a.endless_rounds):
            file = os.path.join(a.folder, "endless.toml")
            with open(file, "w", encoding="utf-8") as f:
                f.write(ENDLESS.format(device=a.device, programs=a.programs, dies_at=DIES_AT))
            with Run(a, f"endless-{way}-{k}", file) as run:
                pause = max(run.round(way, "middle"))
                run.ready()
                report, whole = run.end()
            good = whole and is_joint("endless", report) and good
            print(f"endless kernel, {way:8}: next frame after {pause:8.2f} ms; {report['standby_takeovers']} takeovers, lost {report['lost']}, "
                  f"repeated {report['repeated']}, torn {report['torn']}", flush=True)
    return good


def used_mib(a):
    if a.device == "cpu":
        return 0
    answer = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True)
    return int(answer.stdout.split()[int(a.device.split(":")[1])])


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def soak(a):
    with Run(a, "soak") as run:
        pauses, memory, until, k = [], [], time.monotonic() + a.seconds, 0
        while time.monotonic() < until:
            next_at = time.monotonic() + 5
            pauses.append(max(run.round(("kill", "carousel", "all", "server", "daemon")[k % 5], STAGES[k % len(STAGES)])))
            run.ready()
            memory.append((used_mib(a), resident_kib(run.process.pid), len(os.listdir(f"/proc/{run.process.pid}/fd"))))
            k += 1
            time.sleep(max(0.0, next_at - time.monotonic()))
        report, whole = run.end()
    early, late = memory[min(3, len(memory) - 1)], memory[-1]
    print(f"soak: {a.seconds:.0f} s, {len(pauses)} kills, {report['frames']} frames; pause median {statistics.median(pauses):.2f} ms, longest "
          f"{max(pauses):.2f}; lost {report['lost']}, repeated {report['repeated']}, torn {report['torn']}; restarts {report['restarts']}\n"
          f"GPU memory {early[0]} -> {late[0]} MiB, supervisor {early[1]} -> {late[1]} KiB, descriptors {early[2]} -> {late[2]}", flush=True)
    return whole and report["standby_takeovers"] > 0 and late[0] <= early[0] * 1.02 + 16 and late[2] <= early[2] + 4


def chaos(a):
    words = [a.carousel, "chaos", DEMO, "--device", a.device, "--size", a.size, "--set", f"geometry.triangles={a.triangles}", "--count", "60",
             "--rate", "1", "--seed", str(a.seed), "--fps", str(a.fps or 300), "--set", "isolation=mps", *standbys("true")]
    return subprocess.run(words, env={**os.environ, "XDG_RUNTIME_DIR": a.folder, **a.environment}, cwd=a.folder, check=False,
                          timeout=600).returncode == 0


def bench(a):
    good = True
    for kept in ("true", "false"):
        words = [a.carousel, "bench", "pipeline", DEMO, "--device", a.device, "--modes", "mps", "--rounds", str(a.bench_rounds), "--seconds",
                 "3", "--sizes", a.size, "--set", f"geometry.triangles={a.triangles}", *standbys(kept)]
        print(f"standby = {kept}", flush=True)
        good = subprocess.run(words + (["--against", a.against] if a.against else []), env={**os.environ, **a.environment}, cwd=a.folder,
                              check=False, timeout=1200).returncode == 0 and good
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath), p.add_argument("--device", default="cuda:0")
    p.add_argument("--parts", default="times"), p.add_argument("--ways", default="kill,all,carousel,server,fault")
    p.add_argument("--rounds", type=int, default=20), p.add_argument("--seconds", type=float, default=480)
    p.add_argument("--fps", type=float, default=0), p.add_argument("--size", default="1280x720")
    p.add_argument("--triangles", type=int, default=100000)
    p.add_argument("--against", type=os.path.abspath), p.add_argument("--bench-rounds", type=int, default=5)
    p.add_argument("--seed", type=int, default=60), p.add_argument("--endless-rounds", type=int, default=3)
    p.add_argument("--verbose", action="store_true", help="print each pause of each death, and the log of a run with a long one")
    a = p.parse_args()
    require_gpu(a.device)
    a.carousel, a.environment = os.path.join(a.programs, "carousel"), {}
    with tempfile.TemporaryDirectory(prefix="failover-") as a.folder:
        if a.device == "cpu":
            os.mkdir(os.path.join(a.folder, "fake"))
            os.symlink(FAKE, os.path.join(a.folder, "fake", "nvidia-cuda-mps-control"))
            a.environment = {"CAROUSEL_TEST_MPS_ON_CPU": "1", "PATH": os.path.join(a.folder, "fake") + ":" + os.environ["PATH"]}
        elif shutil.which("nvidia-cuda-mps-control") is None:
            skip("there is no nvidia-cuda-mps-control in PATH")
        parts = {"times": times, "endless": endless, "soak": soak, "chaos": chaos, "bench": bench}
        good = [parts[part](a) for part in a.parts.split(",")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
