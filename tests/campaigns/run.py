#!/usr/bin/env python3
"""Runs a campaign: rows of catalogue.toml, each a command with a seed, and keeps their results.

Usage: run.py NAME BUILD [options]     NAME: a campaign of the catalogue
       run.py slice BUILD [options]    rows of all campaigns that this machine can run, chosen by the commit, for 240 s

A row receives its seed in CAROUSEL_TEST_SEED and its length in CAROUSEL_TEST_SCALE, and has a process group of its own, which is ended
at the row's limit. It passes by exit code 0, is skipped by 77 (or if it skipped all its tests), and fails otherwise. Rows of the same
commit and machine that have passed with the same seed and scale are not repeated, so a campaign that was cut off can be continued.
Exit code: 0 passed, 1 a row failed or was cut off, 2 wrong usage or no row was run, 77 all rows were skipped."""
import argparse
import dataclasses
import datetime
import functools
import glob
import hashlib
import json
import os
import platform
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "tests", "mutations")]
import mutation  # noqa: E402
from processes import SKIPPED  # noqa: E402

with open(os.path.join(HERE, "catalogue.toml"), "rb") as catalogue_file:
    CATALOGUE = tomllib.load(catalogue_file)
CTEST = "ctest --test-dir {build} --output-on-failure --no-tests=error"
SHOWN = 40        # lines of a row's output that are kept
SLICE_S = 240
GRACE_S = 15      # a row at its limit has this long to end its processes


@dataclasses.dataclass
class Row:
    campaign: str
    name: str
    run: str
    seconds: float   # estimate of one round at scale 1
    rounds: int = 1
    scale: int = 1
    needs: list = dataclasses.field(default_factory=list)
    slice: bool = True
    limit: float = 0   # 0: by the estimate

    def command(self, build, seed):
        words = shlex.split(self.run.format(build=shlex.quote(build), seed=seed, ctest=CTEST.format(build=shlex.quote(build))))
        return [sys.executable, "-B", *words] if words[0].endswith(".py") else words

    def limit_at(self, scale):
        return self.limit or 60 + 4 * self.seconds * scale


def rows_of(name, build):
    campaign = CATALOGUE[name]
    shared = {k: v for k, v in campaign.items() if k in ("rounds", "scale", "needs", "slice", "limit")}
    source, _, label = campaign.get("from", "").partition(" ")
    if source == "mutations":
        rows = [{"name": f"{e['area']}: {e['name']}", "run": f"tests/mutations/mutate.py {e['name']}", "seconds": 30} for e in mutation.load()]
    elif source == "ctest":
        rows = [tests_row(t) for t in ctests(build, label)]
    else:
        rows = campaign["rows"]
    return [Row(campaign=name, **{**shared, **row}) for row in rows]


@functools.cache
def ctests(build, label):
    done = subprocess.run(["ctest", "--show-only=json-v1", "-L", f"^{label}$"], cwd=build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ctest lists no tests of {build}: {done.stderr.strip()}")
    return json.loads(done.stdout)["tests"]


def tests_row(test):
    """A test is expected to take a sixth of its TIMEOUT, at which ctest ends it."""
    properties = {p["name"]: p["value"] for p in test.get("properties", [])}
    timeout = properties.get("TIMEOUT", 120)
    pattern = mutation.ctest_pattern(test["name"]).replace("{", "{{").replace("}", "}}")
    return {"name": test["name"], "run": "{ctest} -R " + shlex.quote(f"^{pattern}$"), "seconds": round(timeout / 6), "limit": timeout + 60,
            "needs": ["gpu"] if "gpu" in properties.get("LABELS", []) else []}


def gpus():
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return [line.strip() for line in listed.stdout.splitlines() if line.strip()] if listed.returncode == 0 else []


def missing(needs, build):
    """Why rows with these needs cannot run here; "" if they can."""
    reasons = {
        "gpu": "no NVIDIA GPU" if "gpu" in needs and not gpus() else "",
        "two_gpus": "one GPU of two" if "two_gpus" in needs and len(gpus()) < 2 else "",
        "networks": "" if os.geteuid() == 0 and shutil.which("ip") else "network namespaces need root and ip",
        "ucx": "" if os.path.exists(os.path.join(build, "carousel-send")) else "the build has no links (UCX)",
        "python": "" if glob.glob(os.path.join(build, "python", "carousel", "_carousel*.so")) else "the build has no module for Python",
    }
    return "; ".join(reasons[n] for n in needs if reasons[n])


def git(*words):
    return subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, *words], capture_output=True, text=True, check=False).stdout


def about(commit=None):
    """The commit (with a hash of uncommitted changes) and the machine."""
    head = git("rev-parse", "--short=12", "HEAD").strip()
    changes = git("diff", "HEAD")
    name = commit or (head or "no version control") + (f"+{hashlib.sha256(changes.encode()).hexdigest()[:6]}" if changes else "")
    model = ""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            model = next((line.split(":", 1)[1].strip() + ", " for line in f if line.startswith("model name")), "")
    there = gpus()
    on = f"{len(there)} x {there[0]}; " if there else ""
    return {"commit": name, "machine": f"{on}{model}{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}"}


def judged(code, text):
    """(verdict, detail) by the exit code, and by what ctest and unittest print: both end with 0 if they skipped all tests."""
    if code not in (0, SKIPPED):
        return "failed", f"exit code {code}"
    reasons = "; ".join(sorted({a or b for a, b in re.findall(r"^skipped: (.*)$|\.\.\. skipped ['\"](.*)['\"]$", text, re.M)}))
    if code == SKIPPED:
        return "skipped", reasons or "no reason was printed"
    for count, total in ((len(re.findall(r"^\s*\d+ - .*\(Skipped\)$", text, re.M)), r"^100% tests passed.* out of (\d+)$"),
                         (sum(map(int, re.findall(r"^OK \(.*skipped=(\d+)\)$", text, re.M))), r"^Ran (\d+) tests? in ")):
        of = re.search(total, text, re.M)
        if of and count:
            return "skipped" if count == int(of[1]) else "passed", f"{count} of {of[1]} tests skipped" + (f": {reasons}" if reasons else "")
    return "passed", ""


def end_group(process):
    """SIGINT, so that the row ends the processes it has started, some in groups of their own; then SIGKILL."""
    for number, seconds in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def shown(command):
    """As it is called from the root of the repository."""
    return shlex.join("python3" if word == sys.executable else word.replace(ROOT + os.sep, "") for word in command)


def result_of(row, seed, scale, how, detail, seconds=0.0, output=(), command=""):
    return {"campaign": row.campaign, "row": row.name, "seed": seed, "scale": scale, "how": how, "detail": detail, "seconds": seconds,
            "output": list(output), "command": command}


def run_row(row, build, seed, scale):
    environment = {**os.environ, "CAROUSEL_TEST_SEED": str(seed), "CAROUSEL_TEST_SCALE": str(scale), "PYTHONUNBUFFERED": "1"}
    command, began = row.command(build, seed), time.monotonic()
    # Into a file: a process that outlives the row would hold a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        try:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        except OSError as e:
            how, detail, text = "failed", f"{command[0]} cannot be started: {e.strerror}", ""
        else:
            cut = True
            try:
                process.wait(row.limit_at(scale))
                cut = False
            except subprocess.TimeoutExpired:
                pass
            finally:
                end_group(process)
            out.seek(0)
            text = out.read()
            how, detail = ("cut off", f"ran into its limit of {row.limit_at(scale):.0f} s") if cut else judged(process.returncode, text)
    return result_of(row, seed, scale, how, detail, round(time.monotonic() - began, 1), text.splitlines()[-SHOWN:],
                     f"CAROUSEL_TEST_SEED={seed} CAROUSEL_TEST_SCALE={scale} {shown(command)}")


def slice_plan(rows, seconds, commit):
    """(seed, rows): a round of the rows whose estimates fit into `seconds`. Campaigns take turns, in an order given by the commit."""
    dice = random.Random(commit)
    seed = dice.randrange(1, 1_000_000)
    queues = {}
    for row in rows:
        queues.setdefault(row.campaign, []).append(row)
    for queue in queues.values():
        dice.shuffle(queue)
    names, plan = list(queues), []
    dice.shuffle(names)
    while any(queues.values()):
        for name in names:
            if queues[name] and (row := queues[name].pop()).seconds * row.scale <= seconds - sum(r.seconds * r.scale for r in plan):
                plan.append(dataclasses.replace(row, rounds=1))
    return seed, plan


def counted(results, left):
    counts = [f"{n} {how}" for how in ("passed", "skipped", "failed", "cut off") if (n := sum(r["how"] == how for r in results))]
    return ", ".join(counts + ([f"{len(left)} not run"] if left else [])) or "nothing was run"


def table(results, left):
    """A line per row: rounds, seconds, and how they ended."""
    lines, by_row = [], {}
    for r in results:
        by_row.setdefault((r["campaign"], r["row"]), []).append(r)
    for (campaign, name), mine in by_row.items():
        notes = sorted({f"{r['how']}: {r['detail']}" if r["how"] in ("failed", "cut off") else r["detail"] for r in mine if r["detail"]})
        bad = [str(r["seed"]) for r in mine if r["how"] in ("failed", "cut off")]
        lines.append(f"| {campaign} | {name} | {sum(r['seconds'] for r in mine):.0f} | {counted(mine, [])}"
                     f"{'; seeds ' + ', '.join(bad) if bad else ''}{' (' + '; '.join(notes) + ')' if notes else ''} |")
    lines += [f"| {row.campaign} | {row.name} | - | not run, seed {seed} |" for row, seed in left]
    return ["| campaign | row | s | result |", "|---|---|---|---|", *lines]


def summary(name, options, where, results, left, seeds):
    """The line for tests/bench/FIGURES.md."""
    command = shlex.join(["./tests/run", "--campaign", name, *(["--", *options] if options else [])]).replace("|", "\\|")
    return (f"| {name} | `{command}` | {where['commit']} | {where['machine']} | {counted(results, left)}; seed{'s' if len(seeds) > 1 else ''} "
            f"{seeds[0]}{f'-{seeds[-1]}' if len(seeds) > 1 else ''}; {sum(r['seconds'] for r in results):.0f} s |")


def keep(path, where, results, lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        json.dump({"about": where, "rows": results}, f, indent=1)
    os.replace(path + ".tmp", path)
    text = [f"Commit {where['commit']}; {where['machine']}.", "", *lines]
    for r in results:
        text += ["", f"## {r['campaign']}: {r['row']}, seed {r['seed']}: {r['how']}", "", "```", f"$ {r['command']}", *r["output"], "```"]
    with open(os.path.splitext(path)[0] + ".md", "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")


def key(result):
    return result["row"], result["seed"], result["scale"]


def kept(path, where):
    """The results of the same commit and machine."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        before = json.load(f)
    return before["rows"] if before["about"] == where else []


def known_targets(build):
    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as f:
        return {word for outputs in re.findall(r"^build ([^:]*): ", f.read(), re.M) for word in outputs.split()}


def targets(name, build):
    """Those of the campaign that the build has."""
    known = known_targets(build)
    return [t for t in (["all"] if name == "slice" else CATALOGUE[name].get("targets", [])) if t in known]


def parse(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", choices=[*CATALOGUE, "slice"], metavar="NAME", help=", ".join([*CATALOGUE, "slice"]))
    p.add_argument("build", type=os.path.abspath, metavar="BUILD")
    p.add_argument("--list", action="store_true", help="print the rows with their estimates, and run none")
    p.add_argument("--targets", action="store_true", help="print what must be built for the campaign, and run nothing")
    p.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    p.add_argument("--seed", type=int, help="of the first round; the next ones have the next [that of kept results, or random]")
    p.add_argument("--rounds", type=int, help="seeds per row [the catalogue's]")
    p.add_argument("--scale", type=int, help="CAROUSEL_TEST_SCALE: kills, histories and faults per round, times N [the catalogue's]")
    p.add_argument("--seconds", type=float, help=f"start a row only if its estimate fits into the rest of this time [slice: {SLICE_S}]")
    p.add_argument("--keep", type=os.path.abspath, metavar="FILE.json", help="results; FILE.md has their output [build/campaigns/NAME.json]")
    p.add_argument("--commit", help="name of the commit, in a copy without version control")
    return p.parse_args(words)


def main(words):
    a = parse(words)
    if a.targets:
        print(" ".join(targets(a.name, a.build)))
        return 0
    where = about(a.commit)
    before, path = [], a.keep or os.path.join(ROOT, "build", "campaigns", a.name + ".json")
    seconds = a.seconds if a.seconds is not None else SLICE_S if a.name == "slice" else float("inf")
    if a.name == "slice":
        rows = [r for name in CATALOGUE if CATALOGUE[name].get("slice", True) for r in rows_of(name, a.build)]
        rows = [r for r in rows if r.slice and re.search(a.only, r.name) and not missing(r.needs, a.build)]
        chosen_by = a.commit or git("rev-parse", "HEAD").strip() or datetime.date.today().isoformat()
        seed, rows = slice_plan(rows, seconds, chosen_by)
        seed = a.seed if a.seed is not None else seed
        print(f"slice of {chosen_by}: seed {seed}")
    else:
        rows = [r for r in rows_of(a.name, a.build) if re.search(a.only, r.name)]
        before = kept(path, where)
        seed = a.seed if a.seed is not None else min((r["seed"] for r in before), default=random.randrange(1, 1_000_000))
    if a.list or a.name == "slice":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)   # of `| head`
        for r in rows:
            print(f"{r.campaign:12} {r.seconds * (a.scale or r.scale) * (a.rounds or r.rounds):6.0f} s  {r.name}: "
                  f"{shown(r.command(a.build, seed))}", flush=True)
    if a.list:
        return 0
    # A round of all rows, then the next one.
    work = [(row, seed + k) for k in range(max((a.rounds or r.rounds for r in rows), default=0)) for row in rows if k < (a.rounds or row.rounds)]
    keys = {(row.name, row_seed, a.scale or row.scale) for row, row_seed in work}
    others = [r for r in before if key(r) not in keys]   # of other calls, which stay in the file
    passed = {key(r): r for r in before if r["how"] == "passed"}
    results, left, until = [], [], time.monotonic() + seconds
    print(f"{a.name}: {len(work)} rows, seed {seed} (--seed); {where['commit']}; {where['machine']}", flush=True)
    try:
        for number, (row, row_seed) in enumerate(work, 1):
            scale = a.scale or row.scale
            if (row.name, row_seed, scale) in passed:
                results.append(passed[row.name, row_seed, scale])
                continue
            if why := missing(row.needs, a.build):
                results.append(result_of(row, row_seed, scale, "skipped", why))
                continue
            if row.seconds * scale > until - time.monotonic():
                left.append((row, row_seed))
                continue
            r = run_row(row, a.build, row_seed, scale)
            results.append(r)
            print(f"[{number}/{len(work)}] {row.campaign}: {row.name}, seed {row_seed}: {r['how']}, {r['seconds']:.0f} s"
                  f"{' (' + r['detail'] + ')' if r['detail'] else ''}", flush=True)
            if r["how"] not in ("passed", "skipped"):
                print("\n".join([*r["output"], f"again: {r['command']}"]), flush=True)
            keep(path, where, others + results, table(results, left))
    except KeyboardInterrupt:
        left += work[len(results) + len(left):]
    lines = [*table(results, left), "", summary(a.name, words[2:], where, results, left, sorted({s for _, s in work}) or [seed])]
    keep(path, where, others + results, lines)
    print("\n" + "\n".join(lines))
    hows = {r["how"] for r in results}
    return 1 if hows & {"failed", "cut off"} else 0 if "passed" in hows else SKIPPED if hows else 2


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell's background jobs, and so their rows, ignore SIGINT
    sys.exit(main(sys.argv[1:]))
