"""Links between hosts, by many seeds: all that the tests do in seconds, again and longer.

Usage: hosts_campaign.py FOLDER_OF_PROGRAMS [--seeds 1-4] [--only NAME] [--keep FILE.json]
Run by name (./tests/run --campaign hosts). With --keep the result stands in FILE.json (and FILE.md) with commit and machine; rounds of
this commit that stand there already are not run again, so a campaign that was cut off goes on. A round that fails is told with its
command, whose seed repeats it."""
import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from campaign import about, keep_rounds, kept_rounds  # noqa: E402
from processes import SKIPPED  # noqa: E402

CASES = {
    "1,000 frames of 1 MiB, 40 kills, silence": ["links_campaign.py"],
    "200 frames of 8 MiB, 40 kills, silence": ["links_campaign.py", "--size", "8388608", "--frames", "200", "--fps", "10"],
    "one file: 1,000 frames of 1 MiB, 40 kills, silence": ["one_file_campaign.py"],
    "one file: 200 frames of 8 MiB, 40 kills, silence": ["one_file_campaign.py", "--size", "8388608", "--frames", "200", "--fps", "10"],
    "one file over three hosts in a chain, 40 kills, silence": ["one_file_campaign.py", "--shape", "chain", "--frames", "900", "--size", "262144"],
    "one file over three hosts, one ring read on two, 40 kills, silence": ["one_file_campaign.py", "--shape", "fan-out", "--frames", "900", "--size", "262144"],
    "one file: a link that drops every second": ["one_file_campaign.py", "--kills", "0", "--pause", "1", "--silences", ",".join(["1.2"] * 10)],
    "workers on two hosts: 1,000 frames of 1 MiB, 40 kills, silence": ["workers_campaign.py"],
    "workers on two hosts that are lost or stand still": ["test_workers.py", "Campaign"],
    "one file: a minute of silence": ["one_file_campaign.py", "--frames", "300", "--kills", "10", "--silences", "60", "--fps", "30"],
    "a minute of silence": ["links_campaign.py", "--frames", "300", "--kills", "10", "--silences", "60", "--fps", "30"],
    "durable, compressed by lz4, 40 kills": ["links_campaign.py", "--durable", "--compress", "lz4"],
    "links of two hosts": ["test_links.py", "Campaign"],
    "one file over two hosts": ["test_hosts.py", "Long"],
    "the end of a run over two hosts": ["test_ends.py"],
    "the end of a run whose hosts are apart": ["test_ends_apart.py"],
    "how a part of a run over hosts has ended": ["test_ends_kept.py"],
    "one file over three hosts, and what a lost one takes with it": ["test_three_hosts.py", "Campaign"],
    "hosts that are lost, and full disks": ["test_lost_hosts.py"],
    "one file over two hosts, and a full disk at its durable end": ["test_full_disk.py"],
    "durable release: what is synced, there and back, rings made anew, an untold end": ["test_durable.py", "Campaign"],
    "durable release over three hosts, lost ones among them": ["test_durable_chain.py", "Long"],
    "three hosts": ["test_many_hosts.py", "Everyday"],
    "two receivers, slow and stopped hosts": ["test_many_hosts.py", "Long"],
    "networks that come and go": ["test_networks.py"],
    "hosts that are started by ssh": ["test_launchers.py", "Ssh"],
    "hosts that a real Slurm starts": ["test_slurm.py"],
}
# The account, and how soon links were back: torment.py.
TOLD = r"^.*(?:lost 0, repeated 0, torn 0|the link was back [0-9]+ times|packets went through$|link was down$).*$"


def one_round(programs, case, seed):
    script, *words = CASES[case]
    command = [sys.executable, "-B", os.path.join(HERE, script), programs, *words]
    began = time.monotonic()
    try:
        done = subprocess.run(command, env={**os.environ, "CAROUSEL_SEED": str(seed)}, capture_output=True, text=True, timeout=900, check=False)
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        code, said = -1, (e.stdout or b"").decode(errors="replace") + "\nnot within its time"
    told = re.findall(TOLD, said, re.M)
    how = {0: "passed", SKIPPED: "skipped"}.get(code, "failed")
    return {"case": case, "seed": seed, "how": how, "skipped": what_was_skipped(said, code), "seconds": round(time.monotonic() - began, 1),
            "told": "; ".join(told), **({} if how == "passed" else {"said": said[-3000:], "command": " ".join(command)})}


def what_was_skipped(said, code):
    """Of the whole case (code 77), or of its tests: a case of which a test was skipped has passed with the others."""
    why = re.findall(r"^skipped: (.*)$|\.\.\. skipped ['\"](.*)['\"]$", said, re.M)
    text = "; ".join(sorted({a or b for a, b in why}))
    counted = re.search(r"skipped=(\d+)", said)
    return text or ("no reason was said" if code == SKIPPED else f"{counted[1]} of its tests" if counted else "")


def keep(path, where, rounds):
    keep_rounds(path, where, rounds)
    text = ["# Links between hosts", "",
            f"Commit {where['commit']}, {where['cores']} cores, {where['kernel']} {where['machine']}; `./tests/run --campaign hosts`.", "",
            "| what | rounds | seconds | passed | skipped: why | failed (seeds) |", "|---|---|---|---|---|---|"]
    for case in CASES:
        mine = [r for r in rounds if r["case"] == case]
        failed = ", ".join(str(r["seed"]) for r in mine if r["how"] == "failed")
        why = "; ".join(sorted({r["skipped"] for r in mine if r["skipped"]}))
        left_out = f"{sum(bool(r['skipped']) for r in mine)}: {why}" if why else "0"
        passed = sum(r["how"] == "passed" for r in mine)
        text.append(f"| {case} | {len(mine)} | {sum(r['seconds'] for r in mine):.0f} | {passed} | {left_out} | {failed or 'none'} |")
    with open(os.path.splitext(path)[0] + ".md", "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs")
    p.add_argument("--seeds", default="1-4", help="FIRST-LAST, or one")
    p.add_argument("--only", choices=CASES)
    p.add_argument("--keep")
    a = p.parse_args()
    first, _, last = a.seeds.partition("-")
    where = about()
    rounds = kept_rounds(a.keep, where)
    for seed in range(int(first), int(last or first) + 1):
        for case in CASES if a.only is None else [a.only]:
            if any(r["case"] == case and r["seed"] == seed for r in rounds):
                continue
            r = one_round(a.programs, case, seed)
            rounds.append(r)
            print({k: v for k, v in r.items() if k != "said"}, flush=True)
            if a.keep:
                keep(a.keep, where, rounds)
            if r["how"] == "failed":
                print(r["said"], flush=True)
    for r in rounds:
        if r["skipped"]:
            print(f"skipped: {r['case']}, seed {r['seed']} ({r['how']}): {r['skipped']}")
    bad = [(r["case"], r["seed"]) for r in rounds if r["how"] == "failed"]
    print(f"{sum(r['how'] == 'passed' for r in rounds)} passed, {sum(r['how'] == 'skipped' for r in rounds)} skipped, failed:", bad)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
