"""How long a run stands still when its control block is rebuilt: from damage to the first frame after it.
Usage: rebuild_time.py FOLDER_OF_PROGRAMS [--times 20] [--program carousel] [--standby]
--standby: with a standby of each stage, for which it waits before each damage."""
import argparse
import json
import os
import socket
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


def stages_of(folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(10)
        s.connect(os.path.join(folder, "control.sock"))
        s.send(json.dumps({"type": "ps"}).encode())
        return json.loads(s.recv(1 << 16)).get("stages", [])


class Standbys:
    """Waits for a standby of each stage before a rebuild, and counts those that a rebuild has kept."""

    def __init__(self, folder, stages):
        self.folder, self.stages, self.pids, self.kept = folder, stages, {}, 0

    def await_all(self):
        self.count()
        wait_for("a standby of each stage", lambda: sum(s.get("standby") == "ready" for s in stages_of(self.folder)) == self.stages, 60)
        self.pids = {s["name"]: s["standby_pid"] for s in stages_of(self.folder)}

    def count(self):
        if self.pids:
            self.kept += sum(s["pid"] == self.pids[s["name"]] for s in stages_of(self.folder))
        self.pids = {}


def pipeline(programs, more):
    stages = (("numbers", ""), ("middle", 'inputs = ["numbers"]'), ("sink", 'inputs = ["middle"]\nsink = true'))
    head = '[pipeline]\nname = "rebuilt"\ndevice = "cpu"\nsize = [16, 16]\nfps = 500\n\n'
    return head + "".join(STAGE.format(name=name, programs=programs, more=of + more) for name, of in stages)


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
    p.add_argument("--standby", action="store_true")
    a = p.parse_args()
    programs = os.path.abspath(a.programs)
    with tempfile.TemporaryDirectory(prefix="carousel-rebuild-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        file = os.path.join(folder, "rebuilt.toml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(pipeline(programs, "\nstandby = true" if a.standby else ""))
        log = os.path.join(folder, "log")
        run_folder = os.path.join(folder, "carousel", "rebuilt")
        ledger = os.path.join(run_folder, "ledger-sink.bin")
        with open(log, "w", encoding="utf-8") as out:
            run = subprocess.Popen([os.path.join(programs, a.program), "run", file, "--no-color"], env=environment, cwd=folder,
                                   stdout=out, stderr=out)
        try:
            times, standbys = [], Standbys(run_folder, 3)
            for _ in range(a.times):
                seen = os.stat(ledger).st_size if os.path.exists(ledger) else 0
                wait_for("frames", lambda: os.path.exists(ledger) and os.stat(ledger).st_size > seen + 100 * 64, LIMIT_S)
                if a.standby:
                    standbys.await_all()
                times.append(measure(run_folder))
            standbys.count()
        finally:
            end_process(run)
    print_times(times)
    if a.standby:
        print(f"{standbys.kept} of {3 * a.times} standbys were kept")


if __name__ == "__main__":
    main()
