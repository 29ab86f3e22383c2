"""One pipeline file over two or three hosts: a supervisor on each, that know of each other, in network namespaces, with kills of stages,
links and supervisors on all of them and silences of the network.
Usage: one_file_campaign.py FOLDER_OF_PROGRAMS [--shape two|chain|fan-out] [--size BYTES] [--frames N] [--kills N] [--silences S,S]
       [--fps F] [--seed N]
It says what it did and ends with 0 when nothing was lost, repeated or torn and the hash is that of a run on one host."""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import World  # noqa: E402
from namespaces import B_ADDRESS, C_ADDRESS, Namespaces  # noqa: E402
from spread import SHAPES, Spread, far_names  # noqa: E402
from torment import add_words, parsed, tell, torment  # noqa: E402

PORT = 47100   # a network of their own


def main():
    p = argparse.ArgumentParser()
    add_words(p)
    p.add_argument("--shape", choices=SHAPES, default="two")
    shape = p.parse_known_args()[0].shape
    net = Namespaces(1 + len(far_names(shape)))
    world = None
    try:
        a = parsed(p, net)
        world = World(a.programs)
        inside = {"near": net.inside(net.a), "b": net.inside(net.b), "c": net.inside(net.c)}
        run = Spread(world, shape, a.size, a.frames, a.fps, {"b": (B_ADDRESS, PORT), "c": (C_ADDRESS, PORT)}, inside).start()
        began = time.monotonic()
        killed = torment(net, a, run.is_over, run.kill_one, run.near.text)
        run.check_whole()
        tell(a, killed, time.monotonic() - began, run.near.text())
    finally:
        if world:
            world.end()
        net.end()


if __name__ == "__main__":
    main()
