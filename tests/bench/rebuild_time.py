"""How long a run stands still when its control block is rebuilt: from damage to the first frame after it.
Usage: rebuild_time.py FOLDER_OF_PROGRAMS [--times 20] [--program carousel]"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, wait_for  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "hosts"))
from link_pair import run_id_in  # noqa: E402

STAGE = '[[stage]]\nname = "{name}"\nrun = "{programs}/carousel-test-number"\n{more}\n'
LIMIT_S = 10


def pipeline(programs):
    stages = (("numbers", ""), ("middle", 'inputs = ["numbers"]'), ("sink", 'inputs = ["middle"]\nsink = true'))
    head = '[pipeline]\nname = "rebuilt"\ndevice = "cpu"\nsize = [16, 16]\nfps = 500\n\n'
    return head + "".join(STAGE.format(name=name, programs=programs, more=more) for name, more in stages)


def until(holds, what):
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {LIMIT_S} s")
        time.sleep(0.0005)


def identity(path):
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


def measure(folder, sink="sink"):
    """Damages the block once; returns the ms until the new block and until the first frame after it."""
    block = "/dev/shm/carousel-" + run_id_in(folder)
    ledger = os.path.join(folder, f"ledger-{sink}.bin")
    before = identity(block)
    begun = time.monotonic()
    with open(block, "r+b") as f:
        f.seek(0x2000)
        changed = bytes(b ^ 0x5A for b in f.read(64))
        f.seek(0x2000)
        f.write(changed)
    until(lambda: identity(block) not in (0, before), "the new control block")
    made = time.monotonic()
    size = os.stat(ledger).st_size   # it was truncated before the new block was made
    until(lambda: os.stat(ledger).st_size > size, "the first frame after the rebuild")
    return (made - begun) * 1e3, (time.monotonic() - begun) * 1e3


def print_times(times):
    """Prints the medians; returns that of the times to the first frame."""
    for name, column in (("to the new control block", 0), ("to the first frame", 1)):
        of = sorted(t[column] for t in times)
        print(f"{name}: median {statistics.median(of):.0f} ms ({of[0]:.0f} to {of[-1]:.0f}), {len(of)} rebuilds")
    return statistics.median(t[1] for t in times)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("programs")
    p.add_argument("--times", type=int, default=20)
    p.add_argument("--program", default="carousel", help="the name of the supervisor's program in that folder")
    a = p.parse_args()
    programs = os.path.abspath(a.programs)
    with tempfile.TemporaryDirectory(prefix="carousel-rebuild-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        file = os.path.join(folder, "rebuilt.toml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(pipeline(programs))
        log = os.path.join(folder, "log")
        run_folder = os.path.join(folder, "carousel", "rebuilt")
        ledger = os.path.join(run_folder, "ledger-sink.bin")
        with open(log, "w", encoding="utf-8") as out:
            run = subprocess.Popen([os.path.join(programs, a.program), "run", file, "--no-color"], env=environment, cwd=folder,
                                   stdout=out, stderr=out)
        try:
            times = []
            for _ in range(a.times):
                seen = os.stat(ledger).st_size if os.path.exists(ledger) else 0
                wait_for("frames", lambda: os.path.exists(ledger) and os.stat(ledger).st_size > seen + 100 * 64, LIMIT_S)
                times.append(measure(run_folder))
        finally:
            end_process(run)
    print_times(times)


if __name__ == "__main__":
    main()
