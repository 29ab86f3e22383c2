"""Frames through two runs in two network namespaces, with kills of stages, links and supervisors on both sides and silences of the link.
Usage: links_campaign.py FOLDER_OF_PROGRAMS [--size BYTES] [--frames N] [--kills N] [--silences S,S] [--fps F] [--durable]
       [--compress lz4|zstd] [--seed N]
It says what it did and ends with 0 when nothing was lost, repeated or torn and the hash is that of a run on one host."""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_pair import Pair, add_sending_words, check_whole, kill_one, sending_words  # noqa: E402
from namespaces import B_ADDRESS, Namespaces  # noqa: E402
from torment import add_words, parsed, tell, torment  # noqa: E402


def main():
    p = argparse.ArgumentParser()
    add_words(p)
    add_sending_words(p)
    net = Namespaces()
    pair = None
    try:
        a = parsed(p, net)
        send, in_flight = sending_words(a)
        pair = Pair(a.programs, a.size, B_ADDRESS, inside_a=net.inside(net.a), inside_b=net.inside(net.b),
                    options_a=["--frames", str(a.frames), "--fps", a.fps], in_flight=in_flight, send=send,
                    more="" if a.compress == "none" else "smooth = true\n")
        expected = pair.hash_on_one_host(a.frames)
        pair.b.start()
        pair.a.start()
        began = time.monotonic()
        killed = torment(net, a, lambda: pair.a.process.poll() is not None, lambda dice: kill_one(pair, dice, ["source", "send"], ["receive", "sink"]),
                         pair.a.text)
        codes = [pair.a.wait(120), pair.b.wait(60)]
        assert codes == [0, 0], f"exit codes {codes}\n{pair.a.text()[-3000:]}\n{pair.b.text()[-3000:]}"
        assert check_whole(pair, a.frames) == expected, "another hash than on one host"
        link = next(s for s in pair.a.report()["stages"] if s["name"] == "send")["link"]   # of its last process
        assert a.compress == "none" or link["bytes_on_the_way"] <= link["bytes"] / 4, f"frames crossed as they are: {link}"
        tell(a, killed, time.monotonic() - began, pair.a.text())
    finally:
        if pair:
            pair.end()
        net.end()


if __name__ == "__main__":
    main()
