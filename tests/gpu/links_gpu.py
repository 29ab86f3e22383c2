"""The renderer over a link: geometry, vertex and fragment in one run, display in another, both on GPUs of this machine, over loopback.
Usage: links_gpu.py FOLDER_OF_PROGRAMS [--device cuda:0] [--far cuda:1] [--frames N] [--kills N] [--size WxH] [--fps F]
       [--durable] [--compress lz4|zstd] [--direct] [--compare ROUNDS]
--direct: UCX reads frames on the sender's GPU itself (memory = "direct"), for which it must have CUDA (`carousel-send --ucx`).
Pictures are those of one run on one host, by their hash. First at full speed, then with kills of stages and supervisors of both sides.
--compare: instead, "staged" and "direct" in turn at full speed, this many times, then hops of 300 frames at 30 frames/s. MB are 10^6 bytes. CPU: of the
processes send and receive, per GB that was sent. A hop: from the sender's lease of a frame to its commit there, the acknowledgement included."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "hosts"))
from link_cost import cpu_until_sent, hops_of, part  # noqa: E402
from link_pair import END, Host, Pair, add_sending_words, kill_one, sending_words  # noqa: E402
from processes import require_gpu, skip  # noqa: E402
from seeds import seed  # noqa: E402
from torment import counted  # noqa: E402

RENDERER = '''[pipeline]
name = "{name}"
size = [{width}, {height}]

[[stage]]
name = "geometry"
run = "carousel-geometry"
mesh = "bumpy-sphere"
triangles = 100000

[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]

[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]
'''
SEND = '\n[[stage]]\nname = "send"\nrun = "carousel-send"\ninputs = ["fragment"]\nin_flight = {in_flight}\n'
RECEIVE = '[pipeline]\nname = "{name}"\nsize = [{width}, {height}]\n\n[[stage]]\nname = "receive"\nrun = "carousel-receive"\nin_flight = 4\n'
DISPLAY = '\n[[stage]]\nname = "display"\nrun = "carousel-display"\ninputs = ["{of}"]\nout = ""\n'
HOPS, HOP_RATE = 300, 30   # frames, frames/s


def runs(a, memory):
    """The run on one host, and the pair; each in a separate folder, not started."""
    width, height = (int(n) for n in a.size.split("x"))
    pair = Pair(a.programs, port=a.port)
    how = {"width": width, "height": height}
    send, in_flight = sending_words(a)
    send += f'memory = "{memory}"\n'
    where = {"address": "127.0.0.1", "port": a.port, "token": "link.token", "in_flight": in_flight}
    one = Host(pair, "one", (RENDERER + DISPLAY).format(name="one", of="fragment", **how), ["--frames", str(a.frames)])
    pair.a = Host(pair, "a", (RENDERER + SEND + END).format(name="a", **how, **where) + send, ["--frames", str(a.frames)])
    pair.b = Host(pair, "b", (RECEIVE + END + DISPLAY).format(name="b", of="receive", **how, **where))
    one.device = pair.a.device = a.device
    pair.b.device = a.far or a.device
    return one, pair


def ended(host, seconds=120):
    code = host.wait(seconds)
    assert code == 0, f"{host.name}: exit {code}\n{host.text()[-4000:]}"
    r = host.report()
    assert (r["lost"], r["repeated"], r["torn"]) == (0, 0, 0), host.text()[-4000:]
    return r


def megabytes_of(report):
    return report["frames_per_second"] * 4 * report["size"][0] * report["size"][1] / 1e6


def hop_under_load(pair):
    return next(s for s in pair.a.report()["stages"] if s["name"] == "send")["latency_ms"]


def at_full_speed(a, memory):
    """Returns (MB/s, CPU seconds of send and of receive a GB, hop's p50 and p99 in ms, hash)."""
    one, pair = runs(a, memory)
    try:
        pair.b.start()
        pair.a.start()
        cpu = cpu_until_sent(pair)
        there = [ended(pair.a), ended(pair.b)][1]
        gigabytes = a.frames * 4 * there["size"][0] * there["size"][1] / 1e9
        hop = hop_under_load(pair)
        return megabytes_of(there), cpu["send"] / gigabytes, cpu["receive"] / gigabytes, hop["p50"], hop["p99"], there["image_hash"]
    finally:
        one.end()
        pair.end()


def quiet_hops(a, memory):
    one, pair = runs(a, memory)
    pair.a.options = ["--fps", str(HOP_RATE)]
    try:
        return hops_of(pair, HOPS, HOP_RATE)
    finally:
        one.end()
        pair.end()


def compare(a):
    got = {"staged": [], "direct": []}
    for _ in range(a.compare):
        for memory, rounds in got.items():
            rounds.append(at_full_speed(a, memory))
    assert len({r[-1] for rounds in got.values() for r in rounds}) == 1, "the pictures differ"
    print(f"{a.frames} frames each, median of {a.compare} (all MB/s):")
    for memory, rounds in got.items():
        speed, send, receive, p50, p99 = (statistics.median(r[k] for r in rounds) for k in range(5))
        quiet = quiet_hops(a, memory)
        print(f"  {memory}: {speed:5.0f} MB/s ({', '.join(f'{r[0]:.0f}' for r in rounds)}); CPU a GB: send {send:.2f} s, receive {receive:.2f} s; a hop under "
              f"load p50 {p50:.2f} ms, p99 {p99:.2f} ms; at {HOP_RATE} frames/s p50 {part(quiet, 50):.2f} ms, p99 {part(quiet, 99):.2f} ms")


def kill_some(pair, a, dice):
    killed = []
    while len(killed) < a.kills and pair.a.process.poll() is None:
        time.sleep(dice.uniform(0.1, 0.5))
        what = kill_one(pair, dice, ["vertex", "fragment", "send"], ["receive", "display"])
        if what:
            killed.append(what)
    return killed


def ucx_reaches_gpus(a):
    output = subprocess.run([os.path.join(a.programs, "carousel-send"), "--ucx"], capture_output=True, text=True, timeout=60, check=False).stdout
    return json.loads(output)["cuda"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--far", default="")
    p.add_argument("--frames", type=int, default=1000)
    p.add_argument("--kills", type=int, default=20)
    p.add_argument("--size", default="1280x720")
    p.add_argument("--fps", default="60")
    p.add_argument("--port", type=int, default=47400)
    p.add_argument("--direct", action="store_true")
    p.add_argument("--compare", type=int, default=0, metavar="ROUNDS")
    add_sending_words(p)
    a = p.parse_args()
    a.seed = seed(1)
    require_gpu(a.device)
    if a.device != "cpu" and (a.direct or a.compare) and not ucx_reaches_gpus(a):
        skip("the UCX that is loaded here reaches no GPU (carousel-send --ucx)")
    memory = "direct" if a.direct else "staged"
    print(f"{a.size}, {a.device} and {a.far or a.device}, {'staged and direct' if a.compare else memory}, seed {a.seed} (CAROUSEL_TEST_SEED)")
    if a.compare:
        compare(a)
        return
    one, pair = runs(a, memory)
    try:
        alone = ended(one.start())
        print(f"one host: {alone['frames_per_second']:.0f} frames/s, hash {alone['image_hash']}")
        pair.b.start()
        pair.a.start()
        fast = [ended(pair.a), ended(pair.b)][1]
        hop = hop_under_load(pair)
        print(f"over a link: {fast['frames_per_second']:.0f} frames/s ({megabytes_of(fast):.0f} MB/s), hash {fast['image_hash']}; "
              f"a hop under load p50 {hop['p50']:.2f} ms, p99 {hop['p99']:.2f} ms")
        assert fast["image_hash"] == alone["image_hash"] and fast["frames"] == a.frames
        if a.kills == 0:
            return
        pair.a.options += ["--fps", a.fps]
        pair.b.start()
        pair.a.start()
        killed = kill_some(pair, a, random.Random(a.seed))
        result = [ended(pair.a), ended(pair.b)][1]
        assert result["image_hash"] == alone["image_hash"] and result["frames"] == a.frames, "other pictures than on one host"
        print(f"{a.frames} frames with {counted(killed)}: "
              "lost 0, repeated 0, torn 0, the pictures of one host")
    finally:
        one.end()
        pair.end()


if __name__ == "__main__":
    main()
