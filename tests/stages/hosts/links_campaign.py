"""Frames through two runs in two network namespaces, with kills of stages, links and supervisors on both sides and silences of the link.
Usage: links_campaign.py FOLDER_OF_PROGRAMS [--size BYTES] [--frames N] [--kills N] [--silences S,S] [--fps F] [--durable]
       [--compress lz4|zstd] [--seed N]
It says what it did and ends with 0 when nothing was lost, repeated or torn and the hash is that of a run on one host."""
import argparse
import os
import random
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_pair import Pair, add_sending_words, check_whole, counted, kill_one, sending_words  # noqa: E402
from namespaces import B_ADDRESS, Namespaces  # noqa: E402


def torment(pair, net, a, dice):
    """Kills and silences, spread over the run."""
    killed, silent = [], list(a.silences)
    while len(killed) < a.kills or silent:
        if pair.a.process.poll() is not None:
            raise AssertionError(f"the run was over after {len(killed)} kills: give it more frames or a lower --fps")
        time.sleep(dice.uniform(0.02, a.pause))
        if silent and len(killed) >= a.kills * (len(a.silences) - len(silent) + 1) / (len(a.silences) + 1):
            seconds = silent.pop(0)
            assert net.silence(), "nft did not take the rule"
            time.sleep(seconds)
            assert net.speak()
            print(f"silent for {seconds} s")
        elif len(killed) < a.kills:
            what = kill_one(pair, dice, ["source", "send"], ["receive", "sink"])
            if what:
                killed.append(what)
    return killed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs")
    p.add_argument("--size", type=int, default=1 << 20)
    p.add_argument("--frames", type=int, default=1000)
    p.add_argument("--kills", type=int, default=40)
    p.add_argument("--silences", type=lambda t: [float(s) for s in t.split(",") if s], default=[0.5, 5.0])
    p.add_argument("--fps", default="60")
    p.add_argument("--pause", type=float, default=0.3)
    add_sending_words(p)
    p.add_argument("--seed", type=int, default=int(os.environ.get("CAROUSEL_SEED", "1")))
    a = p.parse_args()
    print(f"seed {a.seed} (--seed)")
    net = Namespaces()
    if a.silences and not net.can_be_silenced():
        print("no silences: nft takes no rules here")
        a.silences = []
    send, in_flight = sending_words(a)
    pair = Pair(a.programs, a.size, B_ADDRESS, inside_a=net.inside(net.a), inside_b=net.inside(net.b),
                options_a=["--frames", str(a.frames), "--fps", a.fps], in_flight=in_flight, send=send)
    try:
        expected = pair.hash_on_one_host(a.frames)
        pair.b.start()
        pair.a.start()
        began = time.monotonic()
        killed = torment(pair, net, a, random.Random(a.seed))
        codes = [pair.a.wait(120), pair.b.wait(60)]
        assert codes == [0, 0], f"exit codes {codes}\n{pair.a.text()[-3000:]}\n{pair.b.text()[-3000:]}"
        assert check_whole(pair, a.frames) == expected, "another hash than on one host"
        print(f"{a.frames} frames of {a.size} bytes, {counted(killed)}, "
              f"{len(a.silences)} silences, {time.monotonic() - began:.1f} s: lost 0, repeated 0, torn 0, the hash of one host")
        # Of a living sender: until the receiver's next process, or the network, was back. A sender's own death counts in its next life.
        back = sorted(float(s) for s in re.findall(r"is up after ([0-9.]+) s", pair.a.text()))
        print(f"the link was back {len(back)} times: median {1000 * statistics.median(back):.0f} ms, longest {1000 * back[-1]:.0f} ms")
    finally:
        pair.end()
        net.end()


if __name__ == "__main__":
    main()
