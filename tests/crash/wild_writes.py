"""Wild writes: random values into a living run's control block, as any broken process of the user could make them. No run may stand
silent for more than 10 s, end with exit code 0 and a wrong account or other pictures, or lose its supervisor. The seed chooses
where: words that are not zero, any word of the block, headers and pages that nobody uses among them, or single bits, one after the
other, of words that are not zero. A run may end with code 1 and a sentence: a bit each 0.1 s can damage a block again before it has delivered a frame.

Usage: wild_writes.py PROGRAMS PIPELINES [--seeds 1-1000] [--writes 30] [--jobs 2] [--keep FILE.json] [--device cpu|cuda] [--isolation mps]
                      [--forked]  a stage with two outputs and a join behind both in place of the demo: their headers carry metadata and used
                                  extents, and the join looks at all of it
       wild_writes.py PROGRAMS PIPELINES everyday            a few seeds, for the tests of every day
Run by name. With --keep the result stands in FILE.json (and FILE.md) with commit and machine; seeds that stand there already are not
run again. Each seed says for itself what it wrote: the same seed over the same build writes the same kinds of values, into words that
depend on what the run has reached."""
import argparse
import concurrent.futures
import glob
import json
import mmap
import os
import platform
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

FRAMES, FPS = 600, 150
SILENT_S, LONGEST_S = 10.0, 150.0
STATUS = re.compile(r"^wild: [\w ]+, (\d+) of \d+ frames")


FORKED = """[pipeline]
name = "forked"
[[stage]]
name = "numbers"
run = "{0}/carousel-test-number"
[[stage]]
name = "fork"
run = "{0}/carousel-test-fork"
inputs = ["numbers"]
[[stage]]
name = "join"
run = "{0}/carousel-test-fork"
inputs = ["fork", "fork.square"]
"""


class Run:
    """One run, its log lines with the time at which they came."""

    on = ["--device", "cpu"]  # where; the same for all runs of a call
    forked = False  # the same

    def __init__(self, programs, pipelines):
        self.folder = tempfile.mkdtemp(prefix="carousel-wild-")
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)
        self.report_file = os.path.join(self.folder, "report.json")
        file, words = os.path.join(pipelines, "demo.toml"), ["--set", "geometry.triangles=200", "--out", ""]
        if self.forked:
            file, words = os.path.join(self.folder, "forked.toml"), []
            with open(file, "w", encoding="utf-8") as out:
                out.write(FORKED.format(programs))
        self.process = subprocess.Popen(
            [os.path.join(programs, "carousel"), "run", file, "--name", "wild", *self.on, "--size", "64x36",
             *words, "--fps", str(FPS), "--frames", str(FRAMES), "--no-color", "--report", self.report_file],
            env={**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")}, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.lines, self.frames, self.heard = [], 0, time.monotonic()
        self.longest_silence = 0.0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            status = STATUS.match(line)
            if status and int(status[1]) == self.frames:
                continue  # a line that says that nothing has changed says nothing
            if status:
                self.frames = int(status[1])
            self.hear()
            self.lines.append(line.rstrip("\n"))

    def hear(self):
        now = time.monotonic()
        self.longest_silence = max(self.longest_silence, now - self.heard)
        self.heard = now

    def block(self):
        """The path of the control block in /dev/shm."""
        with open(os.path.join(self.folder, "runtime", "carousel", "wild", "run.json"), encoding="utf-8") as f:
            run_id = json.load(f)["run_id"]
        return next(p for p in glob.glob("/dev/shm/*") if run_id in p and "trace" not in p)

    def report(self):
        try:
            with open(self.report_file, encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return None

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(10)

    def end(self):
        self.stop()
        shutil.rmtree(self.folder, True)


WHERE = ("used", "any", "bits")
BETWEEN_BITS_S = 0.1  # a bit at a time can be mended before the next one


class Block:
    """The block that the run has now: one that is made anew is another file."""

    def __init__(self, run):
        self.run, self.inode, self.map = run, None, None

    def now(self):
        """The mapping, or None: the run is over."""
        until = time.monotonic() + 2
        while self.run.process.poll() is None and time.monotonic() < until:
            try:
                with open(self.run.block(), "r+b") as f:
                    inode = os.fstat(f.fileno()).st_ino
                    if inode != self.inode:
                        self.close()
                        self.inode, self.map = inode, mmap.mmap(f.fileno(), 0)
                    return self.map
            except (OSError, ValueError, StopIteration):   # just now it is made anew
                time.sleep(0.01)
        return None

    def close(self):
        if self.map is not None:
            self.map.close()


def write_wildly(run, seed, count):
    """`count` values into words of the block. What was written, as texts."""
    dice = random.Random(seed)
    where = WHERE[seed % len(WHERE)]
    done = []
    of_run = Block(run)
    block = of_run.now()
    words = [at for at in range(0, len(block) - 7, 8) if where == "any" or block[at:at + 8] != b"\0" * 8]
    for at in dice.sample(words, min(count, len(words))):
        kind = "bit" if where == "bits" else dice.choice(["random", "bit", "ones", "zeros"])
        if where == "bits":
            time.sleep(BETWEEN_BITS_S)
            block = of_run.now()
            if block is None:
                break
        before = struct.unpack_from("<Q", block, at)[0]
        value = {"random": dice.getrandbits(64), "bit": before ^ 1 << dice.randrange(64), "ones": 2**64 - 1, "zeros": 0}[kind]
        struct.pack_into("<Q", block, at, value)
        done.append(f"{at:#x}: {before:#x} -> {value:#x} ({kind})")
    of_run.close()
    return done


def one_seed(programs, pipelines, seed, writes, wanted_hash):
    run = Run(programs, pipelines)
    result = {"seed": seed, "where": WHERE[seed % len(WHERE)], "verdict": "?", "exit": None}
    try:
        begin = time.monotonic()
        while run.frames < 40 and run.process.poll() is None and time.monotonic() - begin < 60:
            time.sleep(0.02)
        time.sleep(random.Random(seed).random() * 0.5)
        written = write_wildly(run, seed, writes)
        run.hear()
        run.longest_silence = 0.0
        while run.process.poll() is None and time.monotonic() - begin < LONGEST_S:
            time.sleep(0.05)
        ended = run.process.poll() is not None
        run.longest_silence = max(run.longest_silence, time.monotonic() - run.heard)
        run.stop()
        code, report = run.process.returncode, run.report()
        result.update(exit=code, silence_s=round(run.longest_silence, 1), seconds=round(time.monotonic() - begin, 1), written=written)
        if report is not None:
            result.update({k: report.get(k) for k in ("frames", "lost", "repeated", "torn", "stalls", "damaged", "words_mended", "begun_again", "frames_beyond_end")})
            result["same_pictures"] = (report.get("image_hash_of"), report.get("image_hash")) == wanted_hash
        right = report is not None and (report["frames"], report["lost"], report["repeated"], report["torn"]) == (FRAMES, 0, 0, 0)
        result["verdict"] = ("did not end" if not ended else "supervisor dead" if code < 0 or code >= 128 or report is None
                             else "silent" if run.longest_silence > SILENT_S else "exit 0 with a wrong account" if code == 0 and not right
                             else "whole, but other pictures" if code == 0 and not result["same_pictures"]
                             else "whole" if code == 0 else "ended with an error")
        if result["verdict"] != "whole" or not result["same_pictures"]:
            result["log"] = run.lines[-25:]
    finally:
        run.end()
    return result


def undisturbed(programs, pipelines):
    run = Run(programs, pipelines)
    try:
        run.process.wait(LONGEST_S)
        report = run.report()
        assert run.process.returncode == 0 and report["frames"] == FRAMES and report["stalls"] == report["damaged"] == 0, report
        return report["image_hash_of"], report["image_hash"]
    finally:
        run.end()


def machine():
    commit = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    return {"commit": commit, "cores": os.cpu_count(), "kernel": platform.release(), "machine": platform.machine()}


BAD = ("silent", "did not end", "supervisor dead", "exit 0 with a wrong account", "whole, but other pictures", "?")


def keep(path, results, about):
    for r in results.values():  # what was written matters where it did harm
        if r["verdict"] == "whole" and r.get("same_pictures"):
            r.pop("written", None)
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        json.dump({"about": about, "results": sorted(results.values(), key=lambda r: r["seed"])}, f, indent=1)
    os.replace(path + ".tmp", path)
    verdicts = {}
    for r in results.values():
        verdicts.setdefault(r["verdict"], []).append(r["seed"])
    silences = sorted(r.get("silence_s", 0) for r in results.values())
    where = {"cpu": "the CPU"}.get(about.get("device", "cpu"), about.get("device")) + (" under MPS" if about.get("isolation") == "mps" else "")
    text = [f"# Wild writes: {about['writes']} random writes into the control block of a living run, {len(results)} seeds", "",
            f"Commit {about['commit']}, {about['cores']} cores, {about['kernel']} {about['machine']}; "
            f"{FRAMES} frames of {about.get('pipeline', 'the demo')} on {where} at {FPS} frames/s.", "",
            "| verdict | seeds | which |", "|---|---|---|"]
    text += [f"| {v} | {len(s)} | {'' if v == 'whole' else ', '.join(map(str, sorted(s)))} |" for v, s in sorted(verdicts.items())]
    text += ["", *textwrap.wrap(f"Longest silence {silences[-1]:.1f} s, median {silences[len(silences) // 2]:.1f} s; "
             f"found as damage {sum(r.get('damaged') or 0 for r in results.values())} times, as a stall {sum(r.get('stalls') or 0 for r in results.values())} times, "
             f"words mended {sum(r.get('words_mended') or 0 for r in results.values())}; "
             f"exit 0 with other pictures: {[r['seed'] for r in results.values() if r['exit'] == 0 and not r.get('same_pictures')]}.", 120), ""]
    with open(os.path.splitext(path)[0] + ".md", "w", encoding="utf-8") as f:
        f.write("\n".join(text))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs")
    p.add_argument("pipelines")
    p.add_argument("length", nargs="?", default="campaign", choices=["campaign", "everyday"])
    p.add_argument("--seeds", default="1-1000", help="1-1000, or 53,83-90")
    p.add_argument("--writes", type=int, default=30)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--keep")
    p.add_argument("--device", default="cpu")
    p.add_argument("--isolation", default="process", choices=["process", "mps"])
    p.add_argument("--forked", action="store_true", help="two outputs and a join in place of the demo")
    a = p.parse_args()
    Run.forked = a.forked
    a.programs, a.pipelines = os.path.abspath(a.programs), os.path.abspath(a.pipelines)
    Run.on = ["--device", a.device, "--set", f"isolation={a.isolation}"]
    wanted_seeds = []
    for part in (a.seeds if a.length == "campaign" else "3-5").split(","):
        first, _, last = part.partition("-")
        wanted_seeds += range(int(first), int(last or first) + 1)
    results = {}
    if a.keep and os.path.exists(a.keep):
        with open(a.keep, encoding="utf-8") as f:
            results = {r["seed"]: r for r in json.load(f)["results"]}
    wanted = undisturbed(a.programs, a.pipelines)
    seeds = [s for s in wanted_seeds if s not in results]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for r in pool.map(lambda s: one_seed(a.programs, a.pipelines, s, a.writes, wanted), seeds):
            results[r["seed"]] = r
            print({k: v for k, v in r.items() if k not in ("written", "log")}, flush=True)
            if r["verdict"] in BAD:
                print("\n".join(r.get("written", []) + r.get("log", [])), flush=True)
            if a.keep:
                keep(a.keep, results, {**machine(), "writes": a.writes, "device": a.device, "isolation": a.isolation,
                                       "pipeline": "a fork and its join" if a.forked else "the demo"})
    bad = [(r["seed"], r["verdict"]) for r in results.values() if r["verdict"] in BAD]
    print("bad:", bad)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
