"""Every fault that guards are for, and what the guards cost: guards_gpu.py PROGRAMS [--device cuda:0] [--parts faults,mps,controls,cost]

  faults    scribble-input, overrun-output (gaps, then canaries) and scribble-control, --times each, every stage with its own context
  mps       the same in one MPS domain, --mps-times each
  controls  the same without the guards, --control-times each: the harm that they prevent must be seen; mps-controls: in one MPS domain
  cost      time and CPU time per frame at --size, with each guard, with all and with none: --pairs rounds, with a separate run for each
  paced     device time and CPU time per frame, the same way, of runs that make --pace frames per second and rest in between

A run of the demo continues while faults are injected into its stages, in turn; then it is stopped. Expected: the victims have died, each
with its address reported (for a GPU fault: the frames in flight), and no other stage (under MPS: a GPU fault ends the domain and names no stage), lost = repeated = torn = 0, no frame given up, the control block never
rebuilt, and the pictures of a fault-free run of as many frames. Harm, without its guard: of a write into an input or beyond an output slot
other pictures, or a frame that is counted as torn; for writes to the control block, damaged words found by the supervisor, deaths of others, an
incomplete account, or other pictures; and in no case a named writer. Surviving victims are not harm. Cost: each round gives a ratio; the table has their median and the interval
that holds the true median with 95 %. The time per frame is that of the device where the device is the limit, as the demo's at 1080p is.
Paced runs leave out what the stages do to each other on a device that is full. Their device time is from the hand-over of a frame's work until
its stage knows that the work is done, the median over a second's frames, summed over the stages (by `carousel trace`).

All of it ends within --seconds: each row gets its share of the time left, and reports how many of its faults or pairs it completed. The tables come
last. Exit code 1: a row of faults or of controls is not as expected. --device cpu needs no GPU."""
import argparse
import copy
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "bench"), os.path.join(HERE, "..", "support")]
from seeds import seed  # noqa: E402
from trace_cost import interval, running  # noqa: E402

RINGS = ("geometry", "vertex", "fragment")
STAGES = (*RINGS, "display")
READERS, WRITERS = STAGES[1:], RINGS
GAPS, CANARIES, OPEN = ([f"link.{r}.guard={g}" for r in RINGS] for g in ("gap", "canary", "off"))

# name, fault, the possible victims, settings; the report of a death on the CPU and on a GPU
FAULTS = (
    ("scribble-input", "scribble-input", READERS, [], ("a write into its input ring ", "an illegal address, with ")),
    ("overrun-output, gaps", "overrun-output", WRITERS, GAPS, ("an overrun of its slot in the ring ", "an illegal address, with ")),
    ("overrun-output, canaries", "overrun-output", WRITERS, CANARIES, ("an overrun of its slot in the ring ",) * 2),
    ("scribble-control", "scribble-control", STAGES, [], (("a write into the control block: ", "a write into the headers of the ring ",
                                                           "a write after the headers of the ring "),) * 2),
)
# of the row of that name: settings and environment without its guard
WITHOUT = {
    "scribble-input": ([], {"CAROUSEL_TEST_INPUTS_WRITABLE": "1", "CAROUSEL_TEST_SCRIBBLES_ANYWHERE": "1"}),
    "overrun-output, gaps": (OPEN, {"CAROUSEL_TEST_OVERRUNS_ANYWHERE": "1"}),
    "overrun-output, canaries": (OPEN, {"CAROUSEL_TEST_OVERRUNS_ANYWHERE": "1"}),
    "scribble-control": ([], {"CAROUSEL_TEST_BLOCK_GUARD": "off", "CAROUSEL_TEST_SCRIBBLES_ANYWHERE": "1"}),
}
# Frames then wait in every ring, so that a neighbouring slot holds one that is still to be read.
SLOW_SINK = ["display.delay_ms=8"]
# The measurements of each round: name, settings, environment. The first two are the same: what differs
# between them is chance.
BARE = {"CAROUSEL_TEST_INPUTS_WRITABLE": "1", "CAROUSEL_TEST_BLOCK_GUARD": "off"}
ARMS = (
    ("none", OPEN, BARE),
    ("none, once more", OPEN, BARE),
    ("inputs for reading", OPEN, {"CAROUSEL_TEST_BLOCK_GUARD": "off"}),
    ("gaps", GAPS, BARE),
    ("canaries", CANARIES, BARE),
    ("closed control block", OPEN, {"CAROUSEL_TEST_INPUTS_WRITABLE": "1"}),
    ("all, with gaps", GAPS, {}),
)


class Demo:
    """A run of the demo with injected faults."""

    def __init__(self, a, settings, environment, frames=0, fps=0):
        self.folder = tempfile.TemporaryDirectory(prefix="carousel-guards-")
        self.program, self.report_file = os.path.join(a.programs, "carousel"), os.path.join(self.folder.name, "report.json")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, **environment}
        command = [self.program, "run", a.pipeline, "--name", "guards", "--device", a.device, "--size", a.small, "--out", "", "--no-color",
                   "--report", self.report_file, *(word for s in settings for word in ("--set", s))]
        command += ["--frames", str(frames)] if frames else []
        command += ["--fps", str(fps)] if fps else []
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)

    def ask(self, *words):
        p = subprocess.run([self.program, *words, "-p", "guards"], env=self.environment, capture_output=True, text=True, check=False)
        return p.returncode, p.stdout, p.stderr

    def stages(self):
        try:
            return {s["name"]: s for s in json.loads(self.ask("ps", "--json")[1])["stages"]}
        except (ValueError, KeyError):
            return {}

    def makes_progress(self):
        return self.process.poll() is None

    def wait_for(self, true, seconds):
        until = time.monotonic() + seconds
        while self.makes_progress() and time.monotonic() < until:
            if true(self.stages()):
                return True
            time.sleep(0.01)
        return False

    def inject(self, fault, stages, times, until, mps, dice, wait=True):
        """The pids of the victims. Each is seen to be replaced before its next fault; under MPS before any next fault."""
        injected, last = [], {}
        while len(injected) < times and self.makes_progress() and time.monotonic() < until:
            stage = stages[len(injected) % len(stages)] if not mps else dice.choice(stages)

            def ready(s, stage=stage):
                names = STAGES if mps else (stage,)
                return all(n in s and s[n]["state"] == "running" and s[n].get("pid") != last.get(n) for n in names)
            if wait and not self.wait_for(ready, 30):
                break
            pid = self.stages().get(stage, {}).get("pid")
            code, _, error = self.ask("inject", stage, "--fault", fault)
            if code == 0 and pid:
                injected.append(pid)
                last[stage] = pid
            elif "unguarded" in error or "could write" in error:
                raise SystemExit(error)
            if not wait:
                time.sleep(0.05)
        if wait:
            self.wait_for(lambda s: all(n in s and s[n]["state"] == "running" and s[n]["pid"] != last.get(n) for n in STAGES), 60)
        return injected

    def stop(self, seconds=60):
        """Exit code and report."""
        if self.makes_progress():
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, self.report()

    def report(self):
        try:
            with open(self.report_file, encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return None

    def log_tail(self, lines):
        self.log.seek(0)
        return "".join(self.log.readlines()[-lines:])

    def close(self):
        self.stop(20)
        self.log.close()
        self.folder.cleanup()


def undisturbed(a, frames):
    run = Demo(a, [], {}, frames=frames)
    try:
        run.process.wait(300)
        r = run.report()
        return r and (r.get("image_hash_of"), r.get("image_hash"))
    finally:
        run.close()


def complaints(a, code, r, injected, called, mps, mps_names):
    """The differences from the expected results."""
    if r is None:
        return [f"no report, exit code {code}"]
    bad = [f"exit code {code}"] if code != 0 else []
    for key in ("lost", "repeated", "torn", "stalls", "damaged", "words_repaired", "rebuilds"):
        if r.get(key):
            bad.append(f"{key} {r[key]}")
    bad += ["frames were given up"] if r["dead_letters"] else []
    bad += [f"MPS: {key} {r['mps'][key]}" for key in ("blamed", "abandoned") if mps and r["mps"][key]]
    died, innocent, unnamed = set(), set(), 0
    for death in r["recoveries"]:
        if "how" not in death:
            continue  # it was through, and has left
        if death["pid"] in injected and death.get("wild_write", "").startswith(called):
            died.add(death["pid"])  # named
        elif mps and not death.get("wild_write") and (death.get("shared") or death["how"] == "with its MPS domain"):
            died.add(death["pid"])  # no stage is blamed
            unnamed += mps_names and death["pid"] in injected
        elif death["pid"] not in injected or "injected" not in death["how"]:
            innocent.add(f"{death['seat']}: {death['how']}")
        else:
            died.add(death["pid"])
            unnamed += 1
    bad += [f"innocent: {', '.join(sorted(innocent)[:3])}"] if innocent else []
    bad += [f"{len(set(injected) - died)} who were told to did not die"] if set(injected) - died else []
    bad += [f"{unnamed} without a place"] if unnamed else []
    if not bad or not injected:
        wanted = undisturbed(a, r["frames"])
        if wanted != (r.get("image_hash_of"), r.get("image_hash")):
            bad.append("other pictures")
    return bad


def innocents(r, injected):
    """The stages that died without an injected fault, and not with an MPS domain."""
    return {f"{d['seat']}: {d['how']}" for d in r["recoveries"] if "how" in d and d["pid"] not in injected and not d.get("shared")}


def harm_seen(a, name, code, r, injected, called):
    """The damage to other stages where the guard of that row is omitted, and the findings that contradict a
    control."""
    if r is None:
        return [], [f"no report, exit code {code}"]
    harm, against = [], []
    if any(d.get("wild_write", "").startswith(called) for d in r["recoveries"] if "how" in d):
        against.append("a writer is named: the guard is there")
    if r.get("torn"):
        harm.append(f"{r['torn']} torn")
    if name == "scribble-control":
        harm += [f"{key} {r[key]}" for key in ("lost", "repeated", "stalls", "damaged", "words_repaired", "rebuilds") if r.get(key)]
        others = innocents(r, injected)
        harm += [f"died of it: {', '.join(sorted(others)[:3])}"] if others else []
    if r["frames"] and not (name == "scribble-control" and harm) and undisturbed(a, r["frames"]) != (r.get("image_hash_of"), r.get("image_hash")):
        harm.append("other pictures")
    return harm, against


def faults_row(a, row, times, until, mps=False, without=False):
    name, fault, stages, settings, called = row
    environment = {}
    if without:
        settings, environment = WITHOUT[name]
        settings = settings + SLOW_SINK
    settings = settings + (["isolation=mps"] if mps else [])
    run = Demo(a, settings, environment, fps=a.fps)
    try:
        started = run.wait_for(lambda s: len(s) == len(STAGES) and all(x["state"] == "running" and x["frames"] > 5 for x in s.values()), 60)
        if not started:
            no_device = run.process.poll() == 3
            print(f"no device {a.device} here: skipped\n{run.log_tail(5)}" if no_device else f"the demo does not run:\n{run.log_tail(20)}")
            sys.exit(77 if no_device else 1)
        injected = run.inject(fault, stages, times, until, mps, random.Random(a.seed), wait=not without)
        code, r = run.stop(20 if without else 60)
        died_of = called[a.device != "cpu"]
        if without:
            harm, against = harm_seen(a, name, code, r, injected, died_of)
            right, account = bool(harm) and not against and len(injected) > 0, "; ".join(against + harm) or "no harm"
        else:
            bad = complaints(a, code, r, injected, died_of, mps, called[0] == called[1])
            bad += ["as wanted so far: too few in --seconds"] if not bad and len(injected) < times else []
            right, account = not bad, "; ".join(bad) or "as wanted"
        where = "one MPS domain" if mps else "a context each"
        words = [name, f"{where}, without its guard" if without else where, f"{len(injected)} of {times}",
                 str(r and r["frames"]), account, "right" if right else "WRONG"]
        print(" | ".join(words), flush=True)
        if not right:
            print(run.log_tail(15), flush=True)
        return words
    finally:
        run.close()


class Arm(running):
    """A run without faults: trace_cost's, with the time of a frame: seconds, and CPU seconds of all stages."""

    def __init__(self, a, settings, environment, folder):
        with_settings = copy.copy(a)
        with_settings.set = settings
        super().__init__(with_settings, a.programs, folder, "guards-cost")
        self.environment.update(environment)

    def cpu_s(self, pids):
        total = 0
        for pid in pids:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
        return total / 1e9

    def per_frame(self):
        pids = [s["pid"] for s in self.stages()]
        (t0, n0), c0 = self.frames(), self.cpu_s(pids)
        time.sleep(self.a.seconds_per_sample)
        (t1, n1), c1 = self.frames(), self.cpu_s(pids)
        frames = max(1, n1 - n0)
        return (t1 - t0) / frames, (c1 - c0) / frames


class PacedArm(Arm):
    """An Arm whose frames come at --pace: each stage rests before the next one."""

    def __init__(self, a, settings, environment, folder):
        super().__init__(a, [*settings, f"fps={a.pace}"], environment, folder)

    def per_frame(self):
        path = os.path.join(self.folder, "trace.json")
        pids = [s["pid"] for s in self.stages()]
        (_, n0), c0 = self.frames(), self.cpu_s(pids)
        time.sleep(self.a.seconds_per_sample)
        (_, n1), c1 = self.frames(), self.cpu_s(pids)
        subprocess.run([self.program, "trace", path, "-p", self.name, "--seconds", str(self.a.seconds_per_sample)], env=self.environment,
                       check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        spans = {}
        for e in events:
            if e.get("cat") == "phase" and e["name"] == "device":
                spans.setdefault(e["pid"], []).append(e["dur"])
        if len(spans) < len(STAGES) - 1:
            sys.exit(f"the trace tells the device's work of {len(spans)} stages only")
        return sum(statistics.median(all_of_one) for all_of_one in spans.values()) / 1e6, (c1 - c0) / max(1, n1 - n0)


def kept(a):
    """Rounds of earlier calls, as lists of (time, CPU time) by arm."""
    if not a.keep or not os.path.exists(a.keep):
        return []
    with open(a.keep, encoding="utf-8") as f:
        return json.load(f)


def cost_rounds(a, until, arm=Arm, names=("time", "CPU time")):
    """A process may be fast or slow during its whole lifetime, so each figure is of a separate run."""
    arms = [k for k in range(len(ARMS)) if k == 0 or not a.rows or k in a.rows]
    rounds = kept(a)
    dice = random.Random(a.seed + len(rounds))
    while len(rounds) < a.pairs and (len(rounds) < 6 or time.monotonic() < until):
        seen = {}
        for k in dice.sample(arms, len(arms)):
            with tempfile.TemporaryDirectory(prefix="carousel-guards-cost-") as folder, arm(a, *ARMS[k][1:], folder) as run:
                seen[str(k)] = run.per_frame()
        rounds.append(seen)
        if a.keep:
            with open(a.keep, "w", encoding="utf-8") as f:
                json.dump(rounds, f)
    rows = []
    for k in arms[1:]:
        for which, what in enumerate(names):
            pairs = [(r["0"][which], r[str(k)][which]) for r in rounds if str(k) in r]
            ratios = [b / x - 1 for x, b in pairs]
            low, high = interval(ratios)
            rows.append([ARMS[k][0], what, str(len(pairs)), f"{statistics.median(p[0] for p in pairs) * 1e6:.1f}",
                         f"{statistics.median(p[1] for p in pairs) * 1e6:.1f}", f"{statistics.median(ratios):+.2%}", f"{low:+.2%} to {high:+.2%}"])
    return rows


def table(head, rows):
    if rows:
        print("\n".join(["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(r)} |" for r in rows)]), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--pipeline", default=os.path.join(HERE, "..", "..", "pipelines", "demo.toml"))
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--parts", default="faults,mps,controls,cost")
    p.add_argument("--rows", default="", help="of each part, by number: 0,2; of cost, beside 0, what is compared with it")
    p.add_argument("--keep", help="of cost or of paced: a file of the rounds, which a later call of the same part continues")
    p.add_argument("--times", type=int, default=200, help="of each fault")
    p.add_argument("--mps-times", type=int, default=50)
    p.add_argument("--control-times", type=int, default=40, help="of each, without its guard")
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--pace", type=int, default=500, help="frames a second of paced runs")
    p.add_argument("--seconds-a-look", type=float, default=0.8, help="measured each time")
    p.add_argument("--seconds", type=float, default=570, help="for all of it")
    p.add_argument("--size", default="1920x1080", help="of the pictures whose cost is measured")
    p.add_argument("--small", default="640x360", help="of those that faults are told in")
    p.add_argument("--fps", type=int, default=200, help="of those")
    p.add_argument("--warm", type=float, default=0.5, help=argparse.SUPPRESS)
    a = p.parse_args()
    a.programs, a.seed = os.path.abspath(a.programs), seed(16)
    if a.pairs < 6:
        p.error("--pairs: 6 at least, or there is no interval of 95 %")
    parts = a.parts.split(",")
    weight = {"faults": 4.0, "mps": 3.0, "controls": 1.0, "mps-controls": 1.0, "cost": 12.0, "paced": 12.0}
    a.rows = {int(k) for k in a.rows.split(",") if k}
    work = []
    for part in weight:
        rows_of = (None,) if part in ("cost", "paced") else [row for k, row in enumerate(FAULTS) if not a.rows or k in a.rows]
        work += [(part, row) for row in rows_of if part in parts]
    rows, costs, begun = [], [], time.monotonic()
    for k, (part, row) in enumerate(work):
        now = time.monotonic()
        share = (begun + a.seconds - now) * weight[part] / sum(weight[q] for q, _ in work[k:])
        until = now + 0.8 * share  # a fifth for the start, the end and the run without faults
        if part == "cost":
            costs += cost_rounds(a, until)
        elif part == "paced":
            costs += cost_rounds(a, until, PacedArm, ("device time, paced", "CPU time, paced"))
        else:
            without, mps = "controls" in part, "mps" in part
            times = a.control_times if without else a.mps_times if mps else a.times
            rows.append(faults_row(a, row, times, until, mps, without))
    table(("fault", "where", "told", "frames", "account", ""), rows)
    table(("guard", "per frame", "rounds", "without, us", "with, us", "change", "95 %"), costs)
    print(f"{time.monotonic() - begun:.0f} s")
    sys.exit(1 if any(r[-1] != "right" for r in rows) else 0)


if __name__ == "__main__":
    main()
