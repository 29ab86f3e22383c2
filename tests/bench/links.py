"""A link between two runs compared with iperf3 and ucx_perftest, in turn, in two network namespaces (or on loopback without root).
Usage: links.py FOLDER_OF_PROGRAMS [--sizes BYTES,BYTES] [--seconds S] [--rounds N] [--loopback] [--threads]
MB are 10^6 bytes. A hop: from the sender's lease of a frame to its commit there, the acknowledgement included, of 300 frames at 30 frames/s
one by one (`carousel trace`), a second after the link has come up. CPU: of the two link stages, both processes, per GB that was sent. --threads: where the time of a frame goes, by
thread of all stages, and how often each slept."""
import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "hosts"))
from link_cost import cpu_until_sent, hops_of, part  # noqa: E402
from link_pair import Pair  # noqa: E402
from namespaces import B_ADDRESS, Namespaces  # noqa: E402
from processes import skip, wait_for  # noqa: E402
from trace_cost import interval  # noqa: E402

PORT = 41000
HOPS, HOP_RATE = 300, 30   # frames, frames/s


def iperf(inside_a, inside_b, address, seconds):
    server = subprocess.Popen([*inside_b, "iperf3", "-s", "-1", "-p", str(PORT + 200)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    text = subprocess.run([*inside_a, "iperf3", "-c", address, "-p", str(PORT + 200), "-t", str(seconds), "-f", "M", "-J"], capture_output=True,
                          text=True, timeout=60, check=False).stdout
    server.wait(20)
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e6


def perftest(inside_a, inside_b, address, size, seconds, device):
    environment = {**os.environ, "UCX_TLS": "tcp", "UCX_LOG_LEVEL": "error"}
    if device:
        environment["UCX_NET_DEVICES"] = device[0]
    there = {**environment, **({"UCX_NET_DEVICES": device[1]} if device else {})}
    # Its server prints nothing when it listens; ours of this size.
    server = subprocess.Popen([*inside_b, "ucx_perftest", "-p", str(PORT + 300)], env=there, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    count = max(50, int(seconds * 1.2e9 / size))
    text = subprocess.run([*inside_a, "ucx_perftest", address, "-p", str(PORT + 300), "-t", "ucp_am_bw", "-s", str(size), "-n", str(count), "-w", "20"],
                          env=environment, capture_output=True, text=True, timeout=120, check=False).stdout
    server.kill()
    server.wait()
    line = [l for l in text.splitlines() if l.startswith("Final:")]
    if not line:
        raise SystemExit("ucx_perftest: " + text)
    # Final: iterations, overhead p50, average, overall (us), bandwidth average, overall (MB/s, of 2^20), rates
    return float(line[0].split()[6]) * 1.048576


def of_threads(pids):
    """(CPU ms, times that it slept) of each thread of these processes."""
    out = {}
    for stage, pid in pids.items():
        for thread in glob.glob(f"/proc/{pid}/task/*"):
            try:
                with open(thread + "/schedstat", encoding="ascii") as a, open(thread + "/status", encoding="ascii") as b, \
                        open(thread + "/comm", encoding="ascii") as c:
                    sleeps = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", b.read(), re.M)
                    out[stage, thread, c.read().strip()] = int(a.read().split()[0]) / 1e6, int(sleeps[1])
            except OSError:
                pass  # it has ended
    return out


def print_threads(pair, size, seconds):
    """While frames cross."""
    both = ((pair.a, "source"), (pair.a, "send"), (pair.b, "receive"), (pair.b, "sink"))
    wait_for("frames", lambda: (pair.b.stage("sink").get("frames") or 0) > 20)
    pids = {name: host.stage(name).get("pid") for host, name in both}
    frames, began, before = pair.b.stage("receive").get("frames") or 0, time.monotonic(), of_threads(pids)
    time.sleep(seconds)
    after, took = of_threads(pids), time.monotonic() - began
    frames = max(1, (pair.b.stage("receive").get("frames") or 0) - frames)
    print(f"frames of {size} bytes, {frames * size / took / 1e6:.0f} MB/s: a frame takes {1000 * took / frames:.2f} ms, of which")
    for (stage, thread, name), (busy, sleeps) in sorted(after.items()):
        old_busy, old_sleeps = before.get((stage, thread, name), (busy, sleeps))
        if (busy - old_busy) / frames >= 0.02:
            print(f"  {stage:8} {name:16} {(busy - old_busy) / frames:6.2f} ms, {(busy - old_busy) / took / 10:4.0f} % of a core, "
                  f"{(sleeps - old_sleeps) / frames:5.1f} sleeps")


def hops(programs, inside_a, inside_b, address, size):
    pair = Pair(programs, size, address, PORT, inside_a, inside_b, ["--fps", str(HOP_RATE)], more="light = true\n")
    try:
        return hops_of(pair, HOPS, HOP_RATE)
    finally:
        pair.end()


def link(programs, inside_a, inside_b, address, size, seconds, threads=False, about=1200):
    """Returns (MB/s, CPU seconds per GB). `about`: the expected MB/s, so that it takes the requested time."""
    frames = max(30, int(seconds * about * 1e6 / size))
    pair = Pair(programs, size, address, PORT, inside_a, inside_b, ["--frames", str(frames)], more="light = true\n")
    try:
        pair.b.start()
        pair.a.start()
        if threads:
            print_threads(pair, size, seconds / 4)
        cpu = cpu_until_sent(pair)
        if pair.a.wait(10) != 0 or pair.b.wait(30) != 0:
            raise SystemExit(pair.a.text() + pair.b.text())
        return pair.b.report()["frames_per_second"] * size / 1e6, sum(cpu.values()) / (frames * size / 1e9)
    finally:
        pair.end()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs")
    p.add_argument("--sizes", type=lambda t: [int(s) for s in t.split(",")], default=[1 << 20, 1 << 23])
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--loopback", action="store_true")
    p.add_argument("--threads", action="store_true")
    a = p.parse_args()
    for needed in ("iperf3", "ucx_perftest"):
        if not shutil.which(needed):
            skip(f"no {needed} here")
    net = None if a.loopback else Namespaces()
    inside_a, inside_b = (net.inside(net.a), net.inside(net.b)) if net else ([], [])
    address, device = (B_ADDRESS, ("la", "lb")) if net else ("127.0.0.1", ("lo", "lo"))
    try:
        for size in a.sizes:
            got = {"iperf3": [], "ucx_perftest": [], "link": []}
            cpu = []
            for _ in range(a.rounds):
                got["iperf3"].append(iperf(inside_a, inside_b, address, max(1, int(a.seconds))))
                got["ucx_perftest"].append(perftest(inside_a, inside_b, address, size, a.seconds, device))
                speed, seconds = link(a.programs, inside_a, inside_b, address, size, a.seconds, about=got["ucx_perftest"][-1])
                got["link"].append(speed)
                cpu.append(seconds)
            if a.threads:
                link(a.programs, inside_a, inside_b, address, size, 4 * a.seconds, True, about=got["ucx_perftest"][-1])
            quiet = hops(a.programs, inside_a, inside_b, address, size)
            median = {name: statistics.median(all_of) for name, all_of in got.items()}
            print(f"frames of {size} bytes, MB/s, median of {a.rounds} (all):")
            for name, all_of in got.items():
                print(f"  {name:13} {median[name]:7.0f}  ({', '.join(f'{v:.0f}' for v in all_of)})")
            rounds = [ours / max(peers) for ours, *peers in zip(got["link"], got["iperf3"], got["ucx_perftest"])]
            low, high = interval(rounds) if a.rounds >= 6 else (min(rounds), max(rounds))
            better, sure = max(median["iperf3"], median["ucx_perftest"]), ", 95 %" if a.rounds >= 6 else ""
            print(f"  link / the better of both: {median['link'] / better:.2f}, round by round {statistics.median(rounds):.2f} "
                  f"({low:.2f} to {high:.2f}{sure}); CPU {statistics.median(cpu):.2f} s a GB; "
                  f"a hop of {len(quiet)} frames at {HOP_RATE} frames/s: p50 {part(quiet, 50):.2f} ms, p99 {part(quiet, 99):.2f} ms")
    finally:
        if net:
            net.end()


if __name__ == "__main__":
    main()
