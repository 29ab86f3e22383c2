"""Kills and silences, spread over a run in two network namespaces, and what a campaign says of them."""
import os
import random
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import skip  # noqa: E402


def add_words(p):
    p.add_argument("programs")
    p.add_argument("--size", type=int, default=1 << 20)
    p.add_argument("--frames", type=int, default=1000)
    p.add_argument("--kills", type=int, default=40)
    p.add_argument("--silences", type=lambda t: [float(s) for s in t.split(",") if s], default=[0.5, 5.0])
    p.add_argument("--fps", default="60")
    p.add_argument("--pause", type=float, default=0.3)
    p.add_argument("--seed", type=int, default=int(os.environ.get("CAROUSEL_SEED", "1")))


def parsed(p, net):
    """The words. Where no packets can be dropped here the kills are made all the same; tell() says what was left out."""
    a = p.parse_args()
    print(f"seed {a.seed} (--seed)")
    a.left_out = 0
    if a.silences and not net.can_be_silenced():
        a.silences, a.left_out = [], len(a.silences)
    return a


def ups_and_downs(text):
    return len(re.findall(r"is up after [0-9.]+ s", text)), len(re.findall(r" is down", text))


def time_to_return(said, before, bites, patience=10):
    """From now, when packets go through again, until a living sender says that its link is up; None: none was down. `bites`: one must
    have been, or have come up only now; of a silence that is shorter than a link's own patience it needn't."""
    began = time.monotonic()
    while time.monotonic() - began < patience:
        ups, downs = ups_and_downs(said())
        if downs == before[1] and not bites and time.monotonic() - began > 2:
            return None
        if ups > before[0] and (downs > before[1] or bites):
            return time.monotonic() - began
        time.sleep(0.005)
    raise AssertionError(f"no link is up again {patience} s after packets went through" if ups_and_downs(said()) != before else
                         "no link was down in the silence: it has not bitten")


def torment(net, a, is_over, kill, said):
    """`kill(dice)` ends somebody and says who it was, or None; `said()`: what the sender's host has said. Returns who was killed."""
    dice, killed, silent = random.Random(a.seed), [], list(a.silences)
    while len(killed) < a.kills or silent:
        if is_over():
            raise AssertionError(f"the run was over after {len(killed)} kills: give it more frames or a lower --fps")
        time.sleep(dice.uniform(0.02, a.pause))
        if silent and len(killed) >= a.kills * (len(a.silences) - len(silent) + 1) / (len(a.silences) + 1):
            seconds = silent.pop(0)
            host = dice.choice([net.a, *net.far])
            before = ups_and_downs(said())
            assert net.silence(host), "nft did not take the rule"
            time.sleep(seconds)
            assert net.speak(host)
            # What the sender on another far host says is not among what is heard here.
            back = time_to_return(said, before, bites=seconds >= 2 and host in (net.a, net.b))
            print(f"{host.split('-')[1]} silent for {seconds} s: " +
                  ("no living sender's link was down" if back is None else f"the first link was up again {1000 * back:.0f} ms after packets went through"))
        elif len(killed) < a.kills:
            what = kill(dice)
            if what:
                killed.append(what)
    return killed


def counted(killed):
    return f"{len(killed)} kills ({', '.join(f'{w} {killed.count(w)}' for w in sorted(set(killed)))})"


def tell(a, killed, seconds, said_by_a):
    """Of a run that went well. One that was to have silences and had none is no pass: it ends as skipped."""
    print(f"{a.frames} frames of {a.size} bytes, {counted(killed)}, "
          f"{len(a.silences)} silences, {seconds:.1f} s: lost 0, repeated 0, torn 0, the hash of one host")
    # Of a living sender: until the receiver's next process, or the network, was back. A sender's own death counts in its next life.
    back = sorted(float(s) for s in re.findall(r"is up after ([0-9.]+) s", said_by_a))
    if back:
        few = len(back) < 4 * len(a.silences)   # most of them are silences then
        assert few or statistics.median(back) < 1, f"the link was back after {statistics.median(back):.3f} s, as a median"
        print(f"the link was back {len(back)} times: median {1000 * statistics.median(back):.0f} ms, longest {1000 * back[-1]:.0f} ms")
    if a.left_out:
        skip(f"{a.left_out} silences: nft takes no rules here; the kills passed")
