"""Ten thousand kills of each primitive between processes: rounds of test_ipc_kills, each with a seed of its own.

Usage: kill_campaign.py TEST_IPC_KILLS [--kills 10000] [--round 500] [--only NAME] [--keep FILE.json]
Run by name (./tests/run --campaign primitives). With --keep the result stands in FILE.json (and FILE.md) with commit and machine;
rounds of this commit that stand there already are not run again, so a campaign that was cut off goes on. A round that fails is told
with its seed: CAROUSEL_IPC_SEED and CAROUSEL_IPC_KILLS repeat it."""
import argparse
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from campaign import about, keep_rounds, kept_rounds  # noqa: E402

CASES = {"semaphore": "semaphore: *", "queue": "queue: *", "work queue": "work queue: *", "pool": "pool: *", "holder": "holders *"}
TOLD = re.compile(r"^(?P<role>\w+): seed \d+, (?P<killed>\d+) clients killed \((?P<steps>\d+) at a step of their own\), "
                  r"(?P<holders>\d+) holders, (?P<deeds>\d+) deeds$", re.M)


def one_round(program, case, kills, seed):
    environment = {**os.environ, "CAROUSEL_IPC_KILLS": str(kills), "CAROUSEL_IPC_SEED": str(seed)}
    began = time.monotonic()
    try:
        done = subprocess.run([program, CASES[case]], env=environment, capture_output=True, text=True, timeout=60 + kills, check=False)
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        code, said = -1, (e.stdout or b"").decode(errors="replace") + "\nnot within its time"
    told = TOLD.search(said)
    return {"case": case, "seed": seed, "passed": code == 0 and told is not None, "seconds": round(time.monotonic() - began, 1),
            **({k: int(told[k]) for k in ("killed", "steps", "holders", "deeds")} if told else {}),
            **({} if code == 0 and told else {"said": said[-3000:]})}


def keep(path, where, rounds):
    keep_rounds(path, where, rounds)
    text = ["# Kills of the primitives between processes", "",
            f"Commit {where['commit']}, {where['cores']} cores, {where['kernel']} {where['machine']}; `./tests/run --campaign primitives`.", "",
            "| primitive | rounds | clients killed | at a step of their own | holders killed | deeds | failed (seeds) |", "|---|---|---|---|---|---|---|"]
    for case in CASES:
        mine = [r for r in rounds if r["case"] == case]
        sums = [f"{sum(r.get(k, 0) for r in mine):,}" for k in ("killed", "steps", "holders", "deeds")]
        failed = [str(r["seed"]) for r in mine if not r["passed"]]
        text.append(f"| {case} | {len(mine)} | {' | '.join(sums)} | {', '.join(failed) or 'none'} |")
    with open(os.path.splitext(path)[0] + ".md", "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--kills", type=int, default=10_000, help="of clients, of each primitive")
    p.add_argument("--round", type=int, default=500, help="of one process of the test")
    p.add_argument("--only", choices=CASES)
    p.add_argument("--keep")
    a = p.parse_args()
    where = about()
    rounds = kept_rounds(a.keep, where)
    for case in CASES if a.only is None else [a.only]:
        # Behind the seeds that are there: those of another length of round count by what they killed.
        seed = 1 + max((r["seed"] for r in rounds if r["case"] == case), default=0)
        while (left := a.kills - sum(r.get("killed", 0) for r in rounds if r["case"] == case)) > 0:
            # The holders' case kills twice as many clients as it is told.
            r = one_round(a.program, case, min(a.round, left) if case != "holder" else max(1, min(a.round, left) // 2), seed)
            rounds.append(r)
            print({k: v for k, v in r.items() if k != "said"}, flush=True)
            if a.keep:
                keep(a.keep, where, rounds)
            if not r["passed"]:
                print(r["said"], flush=True)
                if not r.get("killed"):
                    break  # it would never get there
            seed += 1
    bad = [(r["case"], r["seed"]) for r in rounds if not r["passed"]]
    print("bad:", bad)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
