"""Instances of one stage on two hosts, in two network namespaces, with kills of instances, links and supervisors on both sides and
silences of the network.
Usage: workers_campaign.py FOLDER_OF_PROGRAMS [--size BYTES] [--frames N] [--kills N] [--silences S,S] [--fps F] [--seed N]
It says what it did and ends with 0 when nothing was lost, repeated or torn and the hash is that of a run on one host."""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import World  # noqa: E402
from namespaces import A_ADDRESS, B_ADDRESS, Namespaces  # noqa: E402
from torment import add_words, parsed, tell, torment  # noqa: E402
from worker_world import FAR_STAGES, check_whole, hash_on_one_host, kill, write_files  # noqa: E402

PORT = 47100   # a network of their own


def main():
    p = argparse.ArgumentParser()
    add_words(p)
    net = Namespaces()
    world = None
    try:
        a = parsed(p, net)
        world = World(a.programs)
        one, file = write_files(world, a.size, 10, [A_ADDRESS, B_ADDRESS], PORT)
        expected = hash_on_one_host(world, one, a.frames)
        options = ("--frames", str(a.frames), "--fps", a.fps)
        near = world.near(file, *options, inside=net.inside(net.a))
        far = world.far(file, "b", *options, inside=net.inside(net.b))
        near.start()
        near.says("waiting for host b")
        far.start()
        far.has_frames("work-done", near)
        began = time.monotonic()

        # The seat here that stands for b is one of two rows of `work`; the link's stages there are hit as often.
        victims = [(near, "source"), (near, "sink"), *[(near, "work")] * 3, *((far, s) for s in FAR_STAGES), (near, ""), (far, "")]

        def hit(dice):
            host, stage = dice.choice(victims)
            if stage:
                return f"{host.name}/{stage}" if kill(host, dice, stage) else None
            return f"supervisor {host.name}" if host.kill_supervisor() else None

        killed = torment(net, a, lambda: near.process.poll() is not None, hit, near.text)
        assert near.wait(120) == 0, f"{near.text()[-3000:]}\n{far.text()[-3000:]}"
        assert far.wait(60) == 0, far.text()[-3000:]
        check_whole(near, a.frames, expected)
        there = far.report()["frames"]
        assert there > a.frames / 20, f"b made {there} of {a.frames} frames: it was hardly there"
        tell(a, killed, time.monotonic() - began, near.text())
        print(f"{there} frames were made on b")
    finally:
        if world:
            world.end()
        net.end()


if __name__ == "__main__":
    main()
