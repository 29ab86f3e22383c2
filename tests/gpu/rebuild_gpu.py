"""Rebuilds of a run on a GPU: rebuild_gpu.py PROGRAMS [--device cuda:0] [--rebuilds 20] [--frames 1500] [--fps 60] [--parts all|contexts] [--standby]

The demo's pictures, while words of the control block are damaged --rebuilds times. The memory of the rings stays. The run has to
deliver every frame with the pictures of a run without damage. Prints the time from each damage to the new block and to the first
frame after it; --limit-ms fails if the median of the latter is longer [0: no limit]. --standby: each stage has a standby, for which
the script waits before each damage; give 3,600 frames.

Exit code 77 with the reason: no GPU."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("support", "bench", os.path.join("stages", "hosts")):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
from processes import end_process, require_gpu, wait_for  # noqa: E402
from rebuild_time import Standbys, measure, print_times  # noqa: E402

DEMO = os.path.join(HERE, "..", "..", "pipelines", "demo.toml")
# Processes that make a context each, at once: the least that a rebuild with new processes needs.
CONTEXT = """
import ctypes, sys, time
cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
status = cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
print(status, (time.monotonic() - begun) * 1e3, flush=True)
sys.stdin.readline()
begun, memory = time.monotonic(), ctypes.c_void_p()
status = (cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
          or cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(1), ctypes.c_size_t(1 << 20)) or cuda.cuCtxSynchronize())
print(status, (time.monotonic() - begun) * 1e3, flush=True)
sys.stdin.readline()
"""
STAGE_NAMES = ("geometry", "vertex", "fragment", "display")
STAGES = len(STAGE_NAMES)
FRAMES_BETWEEN = 20   # a run that is repaired three times without a frame in between ends


class Run:
    def __init__(self, a, name, fps):
        self.folder = os.path.join(a.folder, name)
        os.mkdir(self.folder, 0o700)
        self.report_file = os.path.join(self.folder, "report.json")
        self.log_file = os.path.join(self.folder, "log")
        self.run_folder = os.path.join(self.folder, "carousel", "demo")
        words = [os.path.join(a.programs, "carousel"), "run", DEMO, "--no-color", "--device", a.device, "--size", "640x360", "--out", "",
                 "--frames", str(a.frames), "--fps", str(fps), "--set", f"geometry.triangles={a.triangles}",
                 "--report", self.report_file]
        if a.standby:
            words += [word for stage in STAGE_NAMES for word in ("--set", f"{stage}.standby=true")]
        with open(self.log_file, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(words, env={**os.environ, "XDG_RUNTIME_DIR": self.folder}, cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def log_text(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as f:
            return f.read()

    def delivered(self):
        """The frames in the account of the sink."""
        assert self.process.poll() is None, f"the run has ended with {self.process.returncode}\n{self.log_text()[-3000:]}"
        try:
            return os.stat(os.path.join(self.run_folder, "ledger-display.bin")).st_size // 64
        except FileNotFoundError:
            return 0

    def ended(self, seconds):
        try:
            code = self.process.wait(seconds)
        finally:
            end_process(self.process)
        assert code == 0, f"exit code {code}\n{self.log_text()[-3000:]}"
        with open(self.report_file, encoding="utf-8") as f:
            return json.load(f)


def rebuilt(a):
    """Returns the report of the run that is damaged, and the times of its rebuilds."""
    run, times, most, begun = Run(a, "damaged", a.fps), [], 0, time.monotonic()
    standbys = Standbys(run.run_folder, STAGES)
    try:
        while len(times) < a.rebuilds:
            # A rebuild takes frames back from the account: only those beyond its greatest length are new.
            wait_for("frames between two rebuilds", lambda most=most: run.delivered() >= most + FRAMES_BETWEEN, 60)
            if a.standby:
                standbys.await_all()
            most = run.delivered()
            times.append(measure(run.run_folder, "display"))
        standbys.count()
        if a.standby:
            print(f"{standbys.kept} of {STAGES * a.rebuilds} standbys were kept")
        return run.ended(a.frames / a.fps * 3 + 60), times, time.monotonic() - begun
    except BaseException:
        print(f"after {len(times)} rebuilds:\n{run.log_text()[-4000:]}")
        raise
    finally:
        end_process(run.process)


class Contexts:
    """Processes that make a context each at go(), and use it at the next go()."""

    def __init__(self, ordinal, count):
        self.made = [subprocess.Popen([sys.executable, "-c", CONTEXT, str(ordinal)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                     for _ in range(count)]
        for process in self.made:
            process.stdout.readline()

    def go(self):
        for process in self.made:
            process.stdin.write("\n")
            process.stdin.flush()

    def ms(self):
        """The ms in which the slowest of them has done its step."""
        found = [process.stdout.readline().split() for process in self.made]
        assert all(status == "0" for status, _ in found), found
        return max(float(ms) for _, ms in found)

    def kill(self):
        for process in self.made:
            process.kill()

    def end(self):
        """Returns the ms until all are reaped."""
        begun = time.monotonic()
        for process in self.made:
            process.kill()
        for process in self.made:
            process.wait(30)
            process.stdin.close()
            process.stdout.close()
        return (time.monotonic() - begun) * 1e3


def contexts_at_once(ordinal, count):
    """Returns the ms in which the slowest of `count` processes has made its context."""
    contexts = Contexts(ordinal, count)
    try:
        contexts.go()
        return contexts.ms()
    finally:
        contexts.end()


def at_the_kill(ordinal, ready):
    """Returns the ms of the end of processes, and of others: `ready`: the first use of their contexts; otherwise making them."""
    old, new = Contexts(ordinal, STAGES), Contexts(ordinal, STAGES)
    try:
        old.go()
        old.ms()
        if ready:
            new.go()
            new.ms()
        old.kill()
        new.go()
        gone = old.end()
        return gone, new.ms()
    finally:
        old.end()
        new.end()


def print_contexts(ordinal):
    for count in (1, STAGES):
        of = [contexts_at_once(ordinal, count) for _ in range(5)]
        print(f"contexts of {count} processes at once: median {statistics.median(of):.0f} ms, {len(of)} times")
    for ready, what in ((False, "contexts made"), (True, "first use of contexts")):
        of = [at_the_kill(ordinal, ready) for _ in range(5)]
        print(f"{what} while {STAGES} processes with contexts are killed: median {statistics.median(t[1] for t in of):.1f} ms; "
              f"these are gone after {statistics.median(t[0] for t in of):.0f} ms, {len(of)} times")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath), p.add_argument("--device", default="cuda:0")
    p.add_argument("--rebuilds", type=int, default=20), p.add_argument("--frames", type=int, default=1500)
    p.add_argument("--fps", type=float, default=60), p.add_argument("--triangles", type=int, default=100000)
    p.add_argument("--standby", action="store_true")
    p.add_argument("--limit-ms", type=float, default=0), p.add_argument("--parts", choices=["all", "contexts"], default="all")
    a = p.parse_args()
    require_gpu(a.device)
    ordinal = int(a.device.partition(":")[2] or 0) if a.device != "cpu" else 0
    if a.parts == "contexts":
        return print_contexts(ordinal)
    with tempfile.TemporaryDirectory(prefix="carousel-rebuilt-") as a.folder:
        expected = Run(a, "whole", 0).ended(a.frames / a.fps * 3 + 60)
        got, times, seconds = rebuilt(a)
    if a.device != "cpu":
        print_contexts(ordinal)
    assert got["rebuilds"] == a.rebuilds, f"{got['rebuilds']} rebuilds, not {a.rebuilds}: give more --frames"
    for key in ("lost", "repeated", "torn"):
        assert got[key] == 0, f"{key}: {got[key]}"
    for key in ("frames", "image_hash"):
        assert got[key] == expected[key], f"{key}: {got[key]}, without damage {expected[key]}"
    print(f"{a.device}: {got['frames']} frames in {seconds:.0f} s, {got['rebuilds']} rebuilds, lost, repeated, torn 0, "
          f"hash {got['image_hash']}, as without damage")
    median = print_times(times)
    if a.limit_ms and median > a.limit_ms:
        sys.exit(f"the median of {median:.0f} ms is longer than {a.limit_ms:g} ms")


if __name__ == "__main__":
    main()
