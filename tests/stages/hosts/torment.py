"""Kills of stages, links and supervisors on all hosts of a run, each host a network namespace, and silences of the network.

Usage: torment.py FOLDER_OF_PROGRAMS [--shape links|two|chain|fan-out|workers] [--size BYTES] [--frames N] [--kills N]
       [--silences S,S] [--fps F] [--pause S] [--durable] [--compress lz4|zstd]
Shapes: two runs joined by a link; one file over two hosts, over three in a chain, over three with one ring read on two; the
instances of one stage on two hosts. --durable and --compress are of a link. CAROUSEL_TEST_SEED repeats the plan,
CAROUSEL_TEST_SCALE multiplies frames and kills. Exit code 0: nothing was lost, repeated or torn, and the hash is that of a run on
one host; 77: that, but the network could not be silenced here."""
import argparse
import contextlib
import os
import random
import re
import statistics
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support")]
from host_world import World  # noqa: E402
from link_pair import Pair, add_sending_words, check_whole, kill_one, sending_words  # noqa: E402
from namespaces import A_ADDRESS, B_ADDRESS, C_ADDRESS, Namespaces  # noqa: E402
from processes import skip  # noqa: E402
from seeds import scaled, seed  # noqa: E402
from spread import Spread, remote_names  # noqa: E402
import worker_world  # noqa: E402

PORT = 47100   # in separate networks
SHAPES = ("links", "two", "chain", "fan-out", "workers")


def add_words(p):
    p.add_argument("programs")
    p.add_argument("--shape", choices=SHAPES, default="two")
    p.add_argument("--size", type=int, default=1 << 20)
    p.add_argument("--frames", type=int, default=1000)
    p.add_argument("--kills", type=int, default=40)
    p.add_argument("--silences", type=lambda t: [float(s) for s in t.split(",") if s], default=[0.5, 5.0])
    p.add_argument("--fps", default="60")
    p.add_argument("--pause", type=float, default=0.3)
    add_sending_words(p)


def parsed(p, net):
    """The options. If no packets can be dropped the kills are made all the same; print_summary() reports what was left out."""
    a = p.parse_args()
    a.seed, a.frames, a.kills = seed(), scaled(a.frames), scaled(a.kills)
    print(f"seed {a.seed} (CAROUSEL_TEST_SEED)")
    a.left_out = 0
    if a.silences and not net.can_be_silenced():
        a.silences, a.left_out = [], len(a.silences)
    return a


def ups_and_downs(text):
    return len(re.findall(r"is up after [0-9.]+ s", text)), len(re.findall(r" is down", text))


def time_to_return(output, before, bites, patience=10):
    """The time from now, when packets pass again, until a live sender logs that its link is up; None: none was down. `bites`: a link must
    have been down, or have come up only now; that is not required for a silence shorter than a link's own timeout."""
    began = time.monotonic()
    while time.monotonic() - began < patience:
        ups, downs = ups_and_downs(output())
        if downs == before[1] and not bites and time.monotonic() - began > 2:
            return None
        if ups > before[0] and (downs > before[1] or bites):
            return time.monotonic() - began
        time.sleep(0.005)
    raise AssertionError(f"no link is up again {patience} s after packets went through" if ups_and_downs(output()) != before else
                         "no link was down in the silence: it has not bitten")


def torment(net, a, is_over, kill, output):
    """`kill(dice)` ends a process and returns which, or None; `output()`: the output of the sender's host. Returns the list of victims."""
    dice, killed, silent = random.Random(a.seed), [], list(a.silences)
    while len(killed) < a.kills or silent:
        if is_over():
            raise AssertionError(f"the run was over after {len(killed)} kills: give it more frames or a lower --fps")
        time.sleep(dice.uniform(0.02, a.pause))
        if silent and len(killed) >= a.kills * (len(a.silences) - len(silent) + 1) / (len(a.silences) + 1):
            seconds = silent.pop(0)
            host = dice.choice([net.a, *net.remote])
            before = ups_and_downs(output())
            assert net.drop_packets(host), "nft did not take the rule"
            time.sleep(seconds)
            assert net.restore_packets(host)
            # The log of the sender on another remote host is not included here.
            back = time_to_return(output, before, bites=seconds >= 2 and host in (net.a, net.b))
            print(f"{host.split('-')[1]} silent for {seconds} s: " +
                  ("no living sender's link was down" if back is None else f"the first link was up again {1000 * back:.0f} ms after packets went through"))
        elif len(killed) < a.kills:
            what = kill(dice)
            if what:
                killed.append(what)
    return killed


def counted(killed):
    return f"{len(killed)} kills ({', '.join(f'{w} {killed.count(w)}' for w in sorted(set(killed)))})"


def print_summary(a, killed, seconds, logged_by_a):
    """Summary of a successful run. A run that should have had silences and had none does not pass: it ends as skipped."""
    print(f"{a.frames} frames of {a.size} bytes, {counted(killed)}, "
          f"{len(a.silences)} silences, {seconds:.1f} s: lost 0, repeated 0, torn 0, the hash of one host")
    # For a live sender: until the receiver's next process, or the network, was back. A sender's own death counts in its next incarnation.
    back = sorted(float(s) for s in re.findall(r"is up after ([0-9.]+) s", logged_by_a))
    if back:
        few = len(back) < 4 * len(a.silences)   # most of them are silences then
        assert few or statistics.median(back) < 1, f"the link was back after {statistics.median(back):.3f} s, as a median"
        print(f"the link was back {len(back)} times: median {1000 * statistics.median(back):.0f} ms, longest {1000 * back[-1]:.0f} ms")
    if a.left_out:
        skip(f"{a.left_out} silences: nft takes no rules here; the kills passed")


def links(a, net, ends):
    """(whether it is over, kill(dice), the output of the sender's host, the check after its end) of two runs joined by a link."""
    send, in_flight = sending_words(a)
    pair = Pair(a.programs, a.size, B_ADDRESS, inside_a=net.inside(net.a), inside_b=net.inside(net.b),
                options_a=["--frames", str(a.frames), "--fps", a.fps], in_flight=in_flight, send=send,
                more="" if a.compress == "none" else "smooth = true\n")
    ends.callback(pair.end)
    expected = pair.hash_on_one_host(a.frames)
    pair.b.start()
    pair.a.start()

    def check():
        codes = [pair.a.wait(120), pair.b.wait(60)]
        assert codes == [0, 0], f"exit codes {codes}\n{pair.a.text()[-3000:]}\n{pair.b.text()[-3000:]}"
        assert check_whole(pair, a.frames) == expected, "another hash than on one host"
        link = next(s for s in pair.a.report()["stages"] if s["name"] == "send")["link"]   # of its last process
        assert a.compress == "none" or link["bytes_on_the_way"] <= link["bytes"] / 4, f"frames were sent uncompressed: {link}"
    return (lambda: pair.a.process.poll() is not None, lambda dice: kill_one(pair, dice, ["source", "send"], ["receive", "sink"]),
            pair.a.text, check)


def one_file(a, net, ends):
    """The same for one file over two or three hosts."""
    world = World(a.programs)
    ends.callback(world.end)
    inside = {"near": net.inside(net.a), "b": net.inside(net.b), "c": net.inside(net.c)}
    run = Spread(world, a.shape, a.size, a.frames, a.fps, {"b": (B_ADDRESS, PORT), "c": (C_ADDRESS, PORT)}, inside).start()
    return run.is_over, run.kill_one, run.coordinator.text, run.check_whole


def workers(a, net, ends):
    """The same for instances of one stage on two hosts."""
    world = World(a.programs)
    ends.callback(world.end)
    one, file = worker_world.write_files(world, a.size, 10, [A_ADDRESS, B_ADDRESS], PORT)
    expected = worker_world.hash_on_one_host(world, one, a.frames)
    options = ("--frames", str(a.frames), "--fps", a.fps)
    coordinator = world.coordinator(file, *options, inside=net.inside(net.a))
    remote = world.remote(file, "b", *options, inside=net.inside(net.b))
    coordinator.start()
    coordinator.expect_log("waiting for host b")
    remote.start()
    remote.has_frames("work-done", coordinator)
    # One of two rows of `work` on the coordinator stands for host b; the stages of the link there are hit as often.
    victims = [(coordinator, "source"), (coordinator, "sink"), *[(coordinator, "work")] * 3, *((remote, s) for s in worker_world.REMOTE_STAGES), (coordinator, ""), (remote, "")]

    def kill(dice):
        host, stage = dice.choice(victims)
        if stage:
            return f"{host.name}/{stage}" if worker_world.kill(host, dice, stage) else None
        return f"supervisor {host.name}" if host.kill_supervisor() else None

    def check():
        assert coordinator.wait(120) == 0, f"{coordinator.text()[-3000:]}\n{remote.text()[-3000:]}"
        assert remote.wait(60) == 0, remote.text()[-3000:]
        worker_world.check_whole(coordinator, a.frames, expected)
        there = remote.report()["frames"]
        assert there > a.frames / 20, f"host b made {there} of {a.frames} frames: it was hardly there"
        print(f"{there} frames were made on b")
    return lambda: coordinator.process.poll() is not None, kill, coordinator.text, check


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_words(p)
    shape = p.parse_args().shape
    with contextlib.ExitStack() as ends:
        net = Namespaces(1 + len(remote_names(shape)) if shape not in ("links", "workers") else 2)
        ends.callback(net.end)
        a = parsed(p, net)
        is_over, kill, output, check = {"links": links, "workers": workers}.get(shape, one_file)(a, net, ends)
        began = time.monotonic()
        killed = torment(net, a, is_over, kill, output)
        check()
        print_summary(a, killed, time.monotonic() - began, output())


if __name__ == "__main__":
    main()
