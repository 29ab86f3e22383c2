"""The cost of guards, over processes: guard_cost.py PROGRAMS [--processes 12] [--pairs 20] [--cpu-us 521] [--device 0] [--seed 1]

The placement of a process's memory affects all its figures, so an interval within one process is too narrow. Each process of
guard_cost has its own seed, which changes the placement of its memory, and gives medians of --pairs rounds; a line has
their median and the interval that holds the true median of processes with 95 %."""
import argparse
import glob
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trace_cost import interval  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--processes", type=int, default=12)
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--cpu-us", type=float, default=521, help="of a run's frame, in all stages: guards_gpu.py --parts cost")
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--seed", type=int, default=1, help="of the first process; the next one has the next")
    a = p.parse_args()
    if a.processes < 6:
        p.error("--processes: 6 at least, or there is no interval of 95 %")
    found = glob.glob(os.path.join(a.programs, "**", "guard_cost"), recursive=True)
    if not found:
        sys.exit(f"no guard_cost in {a.programs}: ninja guard_cost, of a build with CUDA")
    command, seen = [found[0], "--pairs", str(a.pairs), "--cpu-us", str(a.cpu_us), "--device", str(a.device)], {}
    for k in range(a.processes):
        ran = subprocess.run([*command, "--seed", str(a.seed + k)], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(f"process {k + 1}: exit code {ran.returncode}: {ran.stderr}")
        for row in (l.split("|")[1:-1] for l in ran.stdout.splitlines() if l.startswith("|") and l.rstrip().endswith("|")):
            cells = [c.strip() for c in row]
            if len(cells) == 7 and cells[5].endswith("%"):
                seen.setdefault((cells[0], cells[1]), []).append(float(cells[5].split()[0]))
        print(f"process {k + 1} of {a.processes}", file=sys.stderr, flush=True)
    print(f"{a.processes} processes of {a.pairs} rounds each\n\n| guard | a frame's | change | 95 % | least and most |\n|---|---|---|---|---|")
    for (guard, what), changes in seen.items():
        low, high = interval(changes)
        ends = f"{min(changes):+.2f}, {max(changes):+.2f}"
        print(f"| {guard} | {what} | {statistics.median(changes):+.2f} % | {low:+.2f} to {high:+.2f} | {ends} |")


if __name__ == "__main__":
    main()
