"""One pipeline file over two hosts: two supervisors that know of each other, in two network namespaces, with kills of stages, links and
supervisors on both sides and silences of the network.
Usage: one_file_campaign.py FOLDER_OF_PROGRAMS [--size BYTES] [--frames N] [--kills N] [--silences S,S] [--fps F] [--seed N]
It says what it did and ends with 0 when nothing was lost, repeated or torn and the hash is that of a run on one host."""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, SINK, SOURCE, World  # noqa: E402
from link_pair import check_report  # noqa: E402
from namespaces import B_ADDRESS, Namespaces  # noqa: E402
from torment import add_words, parsed, tell, torment  # noqa: E402

PORT = 47100   # a network of their own


def hash_on_one_host(world, a):
    sink = SINK.format(name="sink", of="source", bytes=a.size, more="")
    one = world.near(world.write("one.toml", SOURCE.format(bytes=a.size) + sink), "--frames", str(a.frames)).start()
    assert one.wait(120) == 0, one.text()
    return one.report()["image_hash"]


def main():
    p = argparse.ArgumentParser()
    add_words(p)
    net = Namespaces()
    world = None
    try:
        a = parsed(p, net)
        world = World(a.programs)
        expected = hash_on_one_host(world, a)
        file = world.write("chain.toml", SOURCE.format(bytes=a.size) + SINK.format(name="sink", of="source", bytes=a.size, more='host = "b"\n')
                           + HOST.format(name="b", address=B_ADDRESS, port=PORT, launcher="none", more=""))
        options = ("--frames", str(a.frames), "--fps", a.fps)
        near = world.near(file, *options, inside=net.inside(net.a))
        far = world.far(file, "b", *options, inside=net.inside(net.b))
        near.start()
        near.says("waiting for host b")
        far.start()
        far.has_frames("sink", near)
        began = time.monotonic()

        # The link's own stages are hit twice as often.
        victims = [(near, "source"), (far, "sink"), *[(near, "source-to-b"), (far, "source-from-here")] * 2, (near, ""), (far, "")]

        def kill(dice):
            host, stage = dice.choice(victims)
            if stage:
                return f"{host.name}/{stage}" if host.kill(stage) else None
            if host.process.poll() is not None:
                return None
            host.kill_supervisor()
            return f"supervisor {host.name}"

        killed = torment(net, a, lambda: near.process.poll() is not None or far.process.poll() is not None, kill)
        codes = [near.wait(120), far.wait(60)]
        assert codes == [0, 0], f"exit codes {codes}\n{near.text()[-3000:]}\n{far.text()[-3000:]}"
        for host in (near, far):
            check_report(host, a.frames)
        told = [near.report()["hosts"]["b"]["image_hash"], far.report()["image_hash"]]
        assert told == [expected] * 2, f"another hash than on one host: {told}, {expected}"
        tell(a, killed, time.monotonic() - began, near.text())
    finally:
        if world:
            world.end()
        net.end()


if __name__ == "__main__":
    main()
