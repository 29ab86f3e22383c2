"""Wild writes: random values into a running pipeline's control block, as any broken process of the user could make them. No run may be
silent for more than 10 s, end with exit code 0 and a wrong account or other images, or lose its supervisor; no program at a port may get
a torn frame, a frame twice, or miss one that the report does not name. Three runs, by the way in which the words are chosen: words that
are not zero, any word of the block (headers and unused pages included), and single bits, one after the other, of words that are not
zero. A run may end with code 1 and an error message: single bits, one each 0.1 s, can damage a block again before the run has delivered
a frame. Of two runs with a link between them, one is written into. wild_scenes.py has the layouts.

Usage: wild_writes.py PROGRAMS PIPELINES [--writes 30] [--jobs 2] [--device cpu|cuda:0] [--isolation process|mps] [--layout demo]
CAROUSEL_TEST_SEED repeats the kinds of values, in words that depend on what a run has reached; CAROUSEL_TEST_SCALE multiplies the runs."""
import argparse
import concurrent.futures
import mmap
import os
import queue
import random
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from seeds import scaled, seed  # noqa: E402
from wild_scenes import LAYOUTS, Scene  # noqa: E402

FRAMES, FPS = 600, 150
SILENT_S, LONGEST_S = 10.0, 150.0
WHERE = ("used", "any", "bits")
BETWEEN_BITS_S = 0.1  # a single bit can be repaired before the next one


class Block:
    """The block that the run has now: a rebuilt one is another file."""

    def __init__(self, run):
        self.run, self.inode, self.map = run, None, None

    def now(self):
        """The mapping, or None if the run is over."""
        until = time.monotonic() + 2
        while not self.run.ended() and time.monotonic() < until:
            try:
                with open(self.run.block(), "r+b") as f:
                    inode = os.fstat(f.fileno()).st_ino
                    if inode != self.inode:
                        self.close()
                        self.inode, self.map = inode, mmap.mmap(f.fileno(), 0)
                    return self.map
            except (OSError, ValueError, StopIteration):   # it is being rebuilt
                time.sleep(0.01)
        return None

    def close(self):
        if self.map is not None:
            self.map.close()


def choose(block, where, dice):
    """The offset of a word; by chance, because to read every word would take as long as the run."""
    while True:
        at = 8 * dice.randrange(len(block) // 8)
        if where == "any" or block[at:at + 8] != bytes(8):
            return at


def write_wildly(run, where, dice, count):
    """Writes `count` values into words of the block. Returns a list of texts that describe the writes."""
    done = []
    of_run = Block(run)
    for _ in range(count):
        kind = "bit" if where == "bits" else dice.choice(["random", "bit", "ones", "zeros"])
        if where == "bits":
            time.sleep(BETWEEN_BITS_S)
        if (where == "bits" or not done) and (block := of_run.now()) is None:
            break
        at = choose(block, where, dice)
        before = struct.unpack_from("<Q", block, at)[0]
        value = {"random": dice.getrandbits(64), "bit": before ^ 1 << dice.randrange(64), "ones": 2**64 - 1, "zeros": 0}[kind]
        struct.pack_into("<Q", block, at, value)
        done.append(f"{at:#x}: {before:#x} -> {value:#x} ({kind})")
    of_run.close()
    return done


def disturbed(begin, where, seed, writes):
    """The result of one scene with `writes` values in a block of it; judged() adds the verdict."""
    scene = begin()
    try:
        began = time.monotonic()
        while scene.recorded() < 40 and not scene.ended() and time.monotonic() - began < 60:
            time.sleep(0.02)
        dice = random.Random(seed)
        time.sleep(dice.random() * 0.5)
        run = dice.choice(scene.runs)
        recorded = scene.recorded()
        written = write_wildly(run, where, dice, writes)
        for r in scene.runs:
            r.begin_listening()
        while not scene.ended() and time.monotonic() - began < LONGEST_S:
            time.sleep(0.05)
        ended = scene.ended()
        for r in scene.runs:
            r.receive_lines()
            r.stop()
        return {"where": where, "into": run.name, "seed": seed, "ended": ended, "exits": [r.process.returncode for r in scene.runs],
                "silence_s": round(max(r.longest_silence for r in scene.runs), 1), "reports": [r.report() for r in scene.runs],
                "programs": [(p.port, p.end(), p.missing(), p.repeated(), p.output()[-500:]) for p in scene.external], "written": written, "recorded": recorded,
                "logs": [f"{r.name}: {line}" for r in scene.runs for line in r.what_happened()[-40:]]}
    finally:
        scene.end()


def verdict_on_programs(r):
    """What is wrong with the programs at ports; None: nothing. A program may end with an error if its run does."""
    lost = {d["ring_sequence"] for d in r["reports"][-1]["dead_letters"] if d["reason"] == "lost in a rebuild"}
    for port, code, missing, repeated, _ in r["programs"]:
        if code is None:
            return f"the program at {port} did not end"
        if code == 99:
            return f"the program at {port} got a torn frame"
        if code != 0 and r["exits"][-1] == 0:
            return f"the program at {port} ended with an error"
        if repeated:
            return f"the program at {port} got a frame again"
        if not lost.issuperset(missing):
            return f"the program at {port} missed frames that are not reported"
    return None


def judged(r, wanted_hash):
    """The verdict on a scene, and whether it is good."""
    if not r["written"] or not 40 <= r["recorded"] < FRAMES:
        return "over before the writes", False
    if not r["ended"]:
        return "did not end", False
    if any(code < 0 or code >= 128 for code in r["exits"]) or None in r["reports"]:
        return "supervisor dead", False
    if r["silence_s"] > SILENT_S:
        return "silent", False
    if (of_programs := verdict_on_programs(r)) is not None:
        return of_programs, False
    if any(r["exits"]):
        return "ended with an error", True
    report, lost = r["reports"][-1], r["reports"][-1]["dead_letter_count"]
    if any((of["frames"], of["lost"], of["repeated"], of["torn"]) != (FRAMES, 0, 0, 0) for of in r["reports"]):
        return "exit 0 with a wrong account", False
    if lost != sum(d["reason"] == "lost in a rebuild" for d in report["dead_letters"]):
        return "exit 0 and a frame that was given up", False
    if hash_of(report) == wanted_hash:
        return "whole", True
    if lost > 0 or any(repair.get("uncertain") for of in r["reports"] for repair in of["repairs"]):
        return "whole, except for frames that are reported", True
    return "whole, but other images", False


def hash_of(report):
    """What the last sink received."""
    return [(s["stage"], s["image_hash"]) for s in report["sinks"] if s.get("image_hash")][-1:]


def undisturbed(begin):
    scene = begin()
    try:
        until = time.monotonic() + LONGEST_S
        while not scene.ended() and time.monotonic() < until:
            time.sleep(0.05)
        for r in scene.runs:
            r.stop()
            report = r.report()
            assert r.process.returncode == 0 and report["frames"] == FRAMES and report["stalls"] == report["damaged"] == 0, (report, r.lines[-25:])
        return hash_of(scene.runs[-1].report())
    finally:
        scene.end()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath)
    p.add_argument("pipelines", type=os.path.abspath)
    p.add_argument("--writes", type=int, default=30, help="values per run [30]")
    p.add_argument("--jobs", type=int, default=2, help="runs at the same time [2]")
    p.add_argument("--device", default="cpu")
    p.add_argument("--isolation", default="process", choices=["process", "mps"])
    p.add_argument("--layout", default="demo", choices=LAYOUTS, help="the pipeline, and what takes part in it [demo]")
    p.add_argument("--only", type=int, help="run only the scene whose seed ends with this number")
    a = p.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell's background job ignores it, and so would the runs
    number, bad, verdicts = seed(), 0, {}
    print(f"seed {number} (CAROUSEL_TEST_SEED)", flush=True)
    places = queue.SimpleQueue()
    for k in range(a.jobs):
        places.put(k)

    def with_scene(of, *words):
        place = places.get()
        try:
            return of(lambda: Scene(a.layout, a.programs, a.pipelines, FRAMES, FPS, ["--device", a.device, "--set", f"isolation={a.isolation}"],
                                    place), *words)
        finally:
            places.put(place)

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        calm = pool.submit(with_scene, undisturbed)
        runs = [pool.submit(with_scene, disturbed, where, f"{number}.{k}", a.writes) for k, where in enumerate(WHERE * scaled(1))
                if a.only in (None, k)]
        for r in (run.result() for run in runs):
            verdict, good = judged(r, calm.result())
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            bad += not good
            for report in r["reports"]:
                print(f"{r['where']} into {r['into']}: {verdict}, exit codes {r['exits']}, longest silence {r['silence_s']} s, " +
                      ", ".join(f"{k} {(report or {}).get(k)}"
                                for k in ("frames", "lost", "repeated", "torn", "rebuilds", "damaged", "stalls", "words_repaired", "dead_letter_count")), flush=True)
            if verdict != "whole":
                print("\n".join([f"seed {r['seed']}", *r["written"], *map(str, r["programs"]), *r["logs"]]), flush=True)
    print(f"{a.layout}: {len(runs)} runs, {bad} bad; " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
