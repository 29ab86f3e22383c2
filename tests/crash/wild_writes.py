"""Wild writes: random values into a running pipeline's control block, as any broken process of the user could make them. No run may be
silent for more than 10 s, end with exit code 0 and a wrong account or other images, or lose its supervisor. Three runs, by the way
in which the words are chosen: words that are not zero, any word of the block (headers and unused pages included), and single bits,
one after the other, of words that are not zero. A run may end with code 1 and an error message: single bits, one each 0.1 s, can
damage a block again before the run has delivered a frame.

Usage: wild_writes.py PROGRAMS PIPELINES [--writes 30] [--jobs 2] [--device cpu|cuda:0] [--isolation process|mps] [--forked]
CAROUSEL_TEST_SEED repeats the kinds of values, in words that depend on what a run has reached; CAROUSEL_TEST_SCALE multiplies the runs."""
import argparse
import concurrent.futures
import glob
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from seeds import scaled, seed  # noqa: E402

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
    """One run, and its log lines with the times at which they came."""

    on = ["--device", "cpu"]  # the device; the same for all runs of a call
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
                continue  # a line that reports that nothing has changed does not count
            if status:
                self.frames = int(status[1])
            self.receive_lines()
            self.lines.append(line.rstrip("\n"))

    def receive_lines(self):
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
BETWEEN_BITS_S = 0.1  # a single bit can be repaired before the next one


class Block:
    """The block that the run has now: a rebuilt one is another file."""

    def __init__(self, run):
        self.run, self.inode, self.map = run, None, None

    def now(self):
        """The mapping, or None if the run is over."""
        until = time.monotonic() + 2
        while self.run.process.poll() is None and time.monotonic() < until:
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


def write_wildly(run, where, dice, count):
    """Writes `count` values into words of the block. Returns a list of texts that describe the writes."""
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


def disturbed(programs, pipelines, where, seed, writes):
    """The result of one run with `writes` values in its block; judged() adds the verdict."""
    run = Run(programs, pipelines)
    try:
        began = time.monotonic()
        while run.frames < 40 and run.process.poll() is None and time.monotonic() - began < 60:
            time.sleep(0.02)
        dice = random.Random(seed)
        time.sleep(dice.random() * 0.5)
        written = write_wildly(run, where, dice, writes)
        run.receive_lines()
        run.longest_silence = 0.0
        while run.process.poll() is None and time.monotonic() - began < LONGEST_S:
            time.sleep(0.05)
        ended = run.process.poll() is not None
        run.longest_silence = max(run.longest_silence, time.monotonic() - run.heard)
        run.stop()
        return {"where": where, "ended": ended, "exit": run.process.returncode, "silence_s": round(run.longest_silence, 1),
                "seconds": round(time.monotonic() - began, 1), "report": run.report(), "written": written, "log": run.lines[-25:]}
    finally:
        run.end()


def judged(r, wanted_hash):
    """The verdict of a run; those of BAD fail."""
    code, report = r["exit"], r["report"]
    if not r["ended"]:
        return "did not end"
    if code < 0 or code >= 128 or report is None:
        return "supervisor dead"
    if r["silence_s"] > SILENT_S:
        return "silent"
    if code != 0:
        return "ended with an error"
    if (report["frames"], report["lost"], report["repeated"], report["torn"]) != (FRAMES, 0, 0, 0):
        return "exit 0 with a wrong account"
    return "whole" if (report["image_hash_of"], report["image_hash"]) == wanted_hash else "whole, but other images"


BAD = ("silent", "did not end", "supervisor dead", "exit 0 with a wrong account", "whole, but other images")


def undisturbed(programs, pipelines):
    run = Run(programs, pipelines)
    try:
        run.process.wait(LONGEST_S)
        report = run.report()
        assert run.process.returncode == 0 and report["frames"] == FRAMES and report["stalls"] == report["damaged"] == 0, report
        return report["image_hash_of"], report["image_hash"]
    finally:
        run.end()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath)
    p.add_argument("pipelines", type=os.path.abspath)
    p.add_argument("--writes", type=int, default=30, help="values per run [30]")
    p.add_argument("--jobs", type=int, default=2, help="runs at the same time [2]")
    p.add_argument("--device", default="cpu")
    p.add_argument("--isolation", default="process", choices=["process", "mps"])
    p.add_argument("--forked", action="store_true", help="two outputs and a join instead of the demo")
    a = p.parse_args()
    Run.forked = a.forked
    Run.on = ["--device", a.device, "--set", f"isolation={a.isolation}"]
    number, bad = seed(), 0
    print(f"seed {number} (CAROUSEL_TEST_SEED)", flush=True)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        calm = pool.submit(undisturbed, a.programs, a.pipelines)
        runs = [pool.submit(disturbed, a.programs, a.pipelines, where, f"{number}.{k}", a.writes)
                for k, where in enumerate(WHERE * scaled(1))]
        for r in (run.result() for run in runs):
            verdict = judged(r, calm.result())
            report = r["report"] or {}
            print(f"{r['where']}: {verdict}, exit code {r['exit']}, longest silence {r['silence_s']} s, " +
                  ", ".join(f"{k} {report.get(k)}" for k in ("frames", "lost", "repeated", "torn", "damaged", "stalls", "words_repaired")), flush=True)
            bad += verdict in BAD
            if verdict != "whole":
                print("\n".join(r["written"] + r["log"]), flush=True)
    print(f"{len(runs)} runs, {bad} bad")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
