"""All that is to be seen on a GPU and takes longer than a test may, or has figures.

Usage: gpu_campaign.py PROGRAMS [--only REGEX] [--seconds 570] [--keep FILE.json] [--commit NAME] [--list]
Run by name (./tests/run --campaign gpu), or from a pack (pack.py). A row is a command; rows come in the order of the list, as
many as fit into --seconds by their own estimates. With --keep the result stands in FILE.json, and FILE.md with the last lines of
each row; rows of this commit and machine that have passed are not run again, so what was cut off goes on. A row of ctest says how
many of its tests were skipped, and is skipped itself where all were. --commit: of a copy without version control. Exit code 1: a
row failed."""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from campaign import about, keep_rounds, kept_rounds  # noqa: E402
from processes import SKIPPED, require_gpu  # noqa: E402

PYTHON = "tests/stages/python/python_gpu.py"
TESTS = "ctest --test-dir {b} -L gpu -LE packaging --output-on-failure --no-tests=error -R "   # the words have no blanks
# Name: (how long it takes about, in seconds on an H200; the command, {b} the folder of programs).
ROWS = {
    "device": (60, TESTS + "^test_device_cuda:"),
    "memory that links stage": (30, TESTS + "^test_link_memory:"),
    "runs": (240, TESTS + "^test_gpu_runs:"),
    "what is written behind a fence": (40, TESTS + "behind.the.fence"),
    "primitives": (120, TESTS + "a.space.on.a.GPU|lies.in.a.space"),
    "inference": (120, TESTS + "^inference:"),
    "kernels": (60, TESTS + "^test_kernels_gpu:"),
    "pictures": (60, TESTS + "^test_render_gpu:"),
    "python: what planes are": (120, PYTHON + " {b} --parts pointers,copy_from,input,keep,host,outputs,used"),
    "python: streams": (120, PYTHON + " {b} --parts streams,older,far,waits"),
    "python: ports": (120, PYTHON + " {b} --parts latest,newest,ports,kept"),
    "python: kills of torch stages": (
        300, PYTHON + " {b} --parts kills --kinds copy --libraries torch --kills 100 --fps 0 --jobs 4"),
    "python: kills of all kinds": (200, PYTHON + " {b} --parts kills --kills 10"),
    "ports": (70, "tests/gpu/ports_gpu.py {b} --kills 300"),
    "ports, each program in a namespace of its own": (70, "tests/gpu/ports_gpu.py {b} --kills 300 --apart --seed 18"),
    "what is kept": (60, "tests/gpu/kept_gpu.py {b}"),
    "links": (60, "tests/gpu/links_gpu.py {b}"),
    "links, durable and compressed": (60, "tests/gpu/links_gpu.py {b} --durable --compress lz4"),
    "links, read on the GPU by UCX": (60, "tests/gpu/links_gpu.py {b} --direct"),
    "strays": (330, "tests/gpu/guards_gpu.py {b} --parts faults --seconds 320"),
    "strays under MPS": (200, "tests/gpu/guards_gpu.py {b} --parts mps --seconds 190"),
    "strays without guards": (200, "tests/gpu/guards_gpu.py {b} --parts controls,mps-controls --seconds 190"),
    "strays at a control block with keys": (60, "tests/gpu/guards_gpu.py {b} --device cpu --parts faults --rows 3 --seconds 50"),
    "what guards cost": (200, "tests/bench/guard_cost.py {b}"),
    "chaos": (150, "{b}/carousel chaos pipelines/demo.toml --device cuda:0 --duration 60 --rate 3 --seed 78"),
    "chaos under MPS": (150, "{b}/carousel chaos pipelines/demo.toml --device cuda:0 --set isolation=mps --count 60 --rate 1 --fps 300 --seed 79"),
    "wild writes": (100, "tests/crash/wild_writes.py {b} pipelines --device cuda:0 --seeds 1-30 --jobs 3"),
    "wild writes under MPS": (120, "tests/crash/wild_writes.py {b} pipelines --device cuda:0 --isolation mps --seeds 1-12 --jobs 1"),
    "two GPUs": (120, TESTS + "two.GPUs|of.a.list"),
    "two GPUs, without a context's events": (120, "env CAROUSEL_TEST_NO_CONTEXT_EVENTS=1 " + TESTS + "two.GPUs|of.a.list"),
    "python: ports on two GPUs": (60, PYTHON + " {b} --parts two_gpus"),
}
OF_TWO = ("two GPUs", "two GPUs, without a context's events", "python: ports on two GPUs")
SHOWN = 40   # lines of a row, the last ones


def command_of(name, programs):
    words = ROWS[name][1].format(b=programs).split()
    return [sys.executable, "-B", *words] if words[0].endswith(".py") else words


def one_row(name, programs, seconds):
    """In a process group of its own, which ends with it."""
    began = time.monotonic()
    process = subprocess.Popen(command_of(name, programs), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                               env={**os.environ, "PYTHONUNBUFFERED": "1"})   # what a row that is cut off has said
    try:
        said, _ = process.communicate(timeout=seconds)
        how = {0: "passed", SKIPPED: "skipped"}.get(process.returncode, "failed")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        how = "cut off"
    how, skipped = judged(how, said)
    return {"row": name, "how": how, "skipped": skipped, "seconds": round(time.monotonic() - began, 1),
            "command": ROWS[name][1].format(b="build/release"), "said": said.replace(ROOT + os.sep, "").splitlines()[-SHOWN:]}


def judged(how, said):
    """(how a row ended, how many of its tests were skipped). ctest ends with 0 where all were."""
    skipped = len(re.findall(r"^\s*\d+ - .*\(Skipped\)$", said, re.M))
    of = re.search(r"^100% tests passed,?.* out of (\d+)$", said, re.M)   # newer ones leave out "0 tests failed"
    return ("skipped" if how == "passed" and of and skipped == int(of[1]) else how), skipped


def verdict(r):
    return r["how"] + (f", {r['skipped']} tests skipped" if r["skipped"] and r["how"] != "skipped" else "")


def gpus():
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                            check=False).stdout
    return [line.strip() for line in listed.splitlines() if line.strip()]


def keep(path, where, rounds):
    keep_rounds(path, where, rounds)
    on = f"{where['gpus']}; {where['cores']} cores, {where['kernel']} {where['machine']}"
    text = ["# On a GPU", "", f"Commit {where['commit']}; {on}; `./tests/run --campaign gpu`.", "", "| what | | seconds |", "|---|---|---|"]
    text += [f"| {r['row']} | {verdict(r)} | {r['seconds']:.0f} |" for r in rounds]
    for r in rounds:
        text += ["", f"## {r['row']}", "", "```", f"$ {r['command']}", *r["said"], "```"]
    with open(os.path.splitext(path)[0] + ".md", "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath)
    p.add_argument("--only", default="", help="rows whose name has this expression")
    p.add_argument("--seconds", type=float, default=570, help="for all of it")
    p.add_argument("--keep"), p.add_argument("--commit")
    p.add_argument("--list", action="store_true", help="name the rows, run none")
    a = p.parse_args()
    wanted = [name for name in ROWS if re.search(a.only, name)]
    if a.list:
        print("\n".join(f"{name:48} {ROWS[name][0]:4} s  {ROWS[name][1]}" for name in wanted))
        return 0
    require_gpu("cuda:0")
    there, until = gpus(), time.monotonic() + a.seconds
    where = {**about(), "gpus": f"{len(there)} x {there[0]}"}
    where["commit"] = a.commit or where["commit"]
    rounds = [r for r in kept_rounds(a.keep, where) if r["how"] == "passed"]
    known, left = {r["row"] for r in rounds}, []
    for name in wanted:
        if name in known:
            continue
        rest = until - time.monotonic()
        if name in OF_TWO and len(there) < 2 or rest < ROWS[name][0]:
            left.append(name)
            continue
        r = one_row(name, a.programs, rest)
        rounds.append(r)
        print(f"{name}: {verdict(r)}, {r['seconds']:.0f} s: {r['said'][-1] if r['said'] else ''}", flush=True)
        if r["how"] not in ("passed", "skipped"):
            print("\n".join(r["said"]), flush=True)
        if a.keep:
            keep(a.keep, where, rounds)
    print(f"\n{'row':48} {'s':>5}  on {where['gpus']}, {where['commit']}")
    for r in rounds:
        print(f"{r['row']:48} {r['seconds']:5.0f}  {verdict(r)}")
    for name in left:
        print(f"{name:48}     -  not run: {'it takes two GPUs' if name in OF_TWO and len(there) < 2 else 'no time was left'}")
    return 1 if any(r["how"] in ("failed", "cut off") for r in rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
