"""Two ports and nothing else on a GPU, and a program that reads the newest frames; the programs are killed:
ports_gpu.py PROGRAMS [--device cuda:0] [--kills 100] [--rebuilds 0] [--mib 1] [--apart]
Each frame is one number, repeated over the whole frame and checked completely; lost, repeated and torn are the run's own account. Each
program gets a third of the kills. --rebuilds: before the kills the block is made again N times; all frames in the rings have to continue from
memory, and no program may end. --apart: each program has a PID namespace of its own (unshare), and is its first process."""
import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from seeds import scaled, seed  # noqa: E402

FILE = """[pipeline]
name = "ports-gpu"
device = "{device}"
supervisor_grace_s = 20
[[stage]]
name = "camera"
run = "port"
output = {{ value = "u64[{numbers}]" }}
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""
PROGRAMS = ("read", "write", "latest")
APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Program:
    """carousel-test-port-io: its output goes to a file."""

    def __init__(self, a, folder, what, number):
        self.path = os.path.join(folder, f"{what}{number}")
        port = {"write": "camera", "read": "analysis", "latest": "camera"}[what]
        with open(self.path, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([*(APART if a.apart else []), os.path.join(a.programs, "carousel-test-port-io"), what, "ports-gpu",
                                             port, "100"], stdout=out, stderr=subprocess.STDOUT)

    def log_text(self):
        with open(self.path, encoding="utf-8") as text:
            return text.read()

    def lines(self):
        """Grows with each hundred frames."""
        return self.log_text().count("frame ")

    def at_work(self):
        return "frame " in self.log_text()


def rebuild(folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        control.settimeout(20)
        control.connect(os.path.join(folder, "carousel/ports-gpu/control.sock"))
        control.send(b'{"type": "rebuild"}')
        if not json.loads(control.recv(65536)).get("ok"):
            raise SystemExit("the rebuild is refused")


def rebuilt(a, folder, at):
    """Rebuilds the run N times; each time the reader continues."""
    for k in range(a.rebuilds):
        then = at["read"].lines()
        wait_for(lambda before=then: at["read"].lines() > before, 30, f"a frame before rebuild {k}: {at['read'].log_text()[-500:]}")
        rebuild(folder)
    then = at["read"].lines()
    wait_for(lambda: at["read"].lines() > then + 1, 30, f"frames after the rebuilds: {at['read'].log_text()[-500:]}")


def wait_for(true, seconds, what):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs"), p.add_argument("--device", default="cuda:0")
    p.add_argument("--kills", type=int, default=100), p.add_argument("--rebuilds", type=int, default=0)
    p.add_argument("--mib", type=int, default=1, help="of a frame")
    p.add_argument("--apart", action="store_true")
    a = p.parse_args()
    if a.apart and subprocess.run([*APART, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        print(f"no PID namespace can be made here ({' '.join(APART)}): skipped")
        return 77
    a.kills, a.seed = scaled(a.kills), seed(17)
    chance = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        file, report = os.path.join(folder, "ports.toml"), os.path.join(folder, "report.json")
        with open(file, "w", encoding="utf-8") as out:
            out.write(FILE.format(device=a.device, numbers=a.mib << 17))
        log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        run = subprocess.Popen([os.path.join(a.programs, "carousel"), "run", file, "--no-color", "--report", report], stdout=log,
                               stderr=subprocess.STDOUT)
        begun, at = time.monotonic(), {}
        try:
            wait_for(lambda: run.poll() == 3 or os.path.exists(os.path.join(folder, "carousel/ports-gpu/control.sock")), 20, "the run's start")
            if run.poll() == 3:
                log.seek(0)
                print(f"no device {a.device} here: skipped\n{log.read()[-1000:]}")
                return 77
            at = {what: Program(a, folder, what, "") for what in PROGRAMS}
            rebuilt(a, folder, at)
            with_frame = 0
            programs = [PROGRAMS[k % 3] for k in range(a.kills)]   # each equally often
            chance.shuffle(programs)
            for k, what in enumerate(programs):
                if k % 4 != 0:   # three of four in their work, the others anywhere in their start
                    wait_for(at[what].at_work, 30, f"a frame of {what}: {at[what].log_text()}")
                time.sleep(chance.random() * 0.05)
                with_frame += at[what].at_work()
                at[what].process.kill()
                if at[what].process.wait() != -signal.SIGKILL:
                    raise SystemExit(f"{what} ended by itself: {at[what].log_text()}")
                at[what] = Program(a, folder, what, k)
            for each in at.values():
                wait_for(each.at_work, 30, f"a frame at the end: {each.log_text()}")
            run.send_signal(signal.SIGINT)
            code = run.wait(60)
            ends = [each.process.wait(20) for each in at.values()]
        finally:
            for each in [*[x.process for x in at.values()], run]:
                if each.poll() is None:
                    each.kill()
        log.seek(0)
        text_of_run = log.read()
        kept = sum(map(int, re.findall(r"(\d+) frames in the rings continue from memory", text_of_run)))
        if code != 0 or any(ends) or "is lost" in text_of_run or (a.rebuilds > 0 and kept == 0):
            raise SystemExit(f"exit {code}, programs {ends}, {kept} frames kept\n{text_of_run[-3000:]}" + "".join(x.log_text()[-500:] for x in at.values()))
        with open(report, encoding="utf-8") as text:
            got = json.load(text)
    if a.rebuilds > 0:
        print(f"{a.device}: {got['rebuilds']} rebuilds, {kept} frames continued from memory, none lost")
    print(f"{a.device}: {programs.count('read')} kills of readers, {programs.count('latest')} of readers of the newest frame "
          f"and {programs.count('write')} of writers"
          f"{', each in a PID namespace of its own' if a.apart else ''} (seed {a.seed}, {with_frame} of programs "
          f"that had carried a frame), {got['frames']} frames of "
          f"{a.mib} MiB in {time.monotonic() - begun:.0f} s: lost {got['lost']}, repeated {got['repeated']}, torn {got['torn']}")
    return 0 if (got["lost"], got["repeated"], got["torn"]) == (0, 0, 0) else 1


sys.exit(main())
