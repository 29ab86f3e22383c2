"""Stages with state on a GPU (device_stage.cpp): each word of a state is a running hash of all frames, so a state that is lost,
torn or repeated changes all numbers that follow.

  kills   source and middle are killed, in time slices and under MPS, with and without graphs: the hashes of a run on the CPU,
          which takes place at the same time
  checkpoints   a rebuild, then the death of all processes, then a stop: the states continue from memory and from
          checkpoints, with the hashes of a run on the CPU; time per frame with a checkpoint every 10 frames
  time    time per frame with the state, and with memory of the stage's own instead (a ring of states may cost 3 % more):
          two own buffers stay in the device's cache; sixteen have the traffic of a ring

state_gpu.py PROGRAMS [--parts kills,checkpoints,time] [--kills 100] [--words 1000000] [--seconds 1] [--rounds 3]

Kills take at most 40 s in time slices, 40 s under MPS and 10 s with graphs; if fewer than --kills took place, the table shows that,
and the exit code is 1.

Exit code 77 with the reason: no GPU."""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

FPS = 300   # so that a run with kills has no more frames than the reference
REFERENCE_FRAMES = 20_000
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import end_process, require_gpu, wait_for  # noqa: E402


def hashes(report, first):
    """The hashes of the sink's frames from `first` on, by its account (shared/ledger/ledger.hpp: records of 64 bytes)."""
    with open(report["sinks"][0]["ledger"], "rb") as f:
        records = f.read()[64 * first:]
    return [struct.unpack_from("<Q", records, at + 32)[0] for at in range(0, len(records), 64)]


class Runs:
    def __init__(self, programs, folder):
        self.programs, self.folder = os.path.abspath(programs), folder
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder}

    def carousel(self, *words):
        return subprocess.run([os.path.join(self.programs, "carousel"), *words], env=self.environment, capture_output=True, text=True,
                              timeout=30, check=False)

    def start(self, stage, keys, sink, isolation, options=(), pipeline=""):
        """Starts numbers -> middle -> sink, whose numbers and middle have these keys."""
        file, self.report = os.path.join(self.folder, "states.toml"), os.path.join(self.folder, "report.json")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "states"\nisolation = "{isolation}"\n{pipeline}')
            for name, reads, more in (("numbers", None, keys), ("middle", "numbers", keys), ("sink", "middle", sink)):
                inputs = f'inputs = ["{reads}"]\n' if reads else ""
                out.write(f'[[stage]]\nname = "{name}"\nrun = "{self.programs}/{stage}"\n{inputs}{more}\n')
        return subprocess.Popen([os.path.join(self.programs, "carousel"), "run", file, "--report", self.report, "--no-color", *options],
                                env=self.environment, cwd=self.folder)

    def newest_checkpoint(self):
        try:
            with open(os.path.join(self.folder, "kept", "checkpoints.json"), encoding="utf-8") as f:
                return json.load(f)["frames"][-1]
        except FileNotFoundError:
            return 0

    def ask(self, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(10)
            s.connect(os.path.join(self.folder, "carousel", "states", "control.sock"))
            s.send(json.dumps(request).encode())
            return json.loads(s.recv(1 << 16))

    def finish(self, run, timeout_s=200):
        try:
            code = run.wait(timeout_s)
        finally:
            end_process(run)
        if code != 0:
            sys.exit(f"the run ended with exit code {code}")
        with open(self.report, encoding="utf-8") as f:
            return json.load(f)

    def reference(self, frames):
        """Starts the same pipeline on the CPU. It ends by itself."""
        return self.start("carousel-test-number", "state = true", "sink = true", "process", ("--device", "cpu", "--frames", str(frames)))

    def kill(self, stage):
        try:
            return self.ask({"type": "kill", "stage": stage, "signal": int(signal.SIGKILL)}).get("ok", False)
        except OSError:   # the run starts or ends
            return False

    def check_kills(self, isolation, kills, words, same_work, limit_s, reference):
        """Returns a row of the table, and whether it is as required. `reference`: returns the hashes of that number of frames."""
        keys = f"remembers = {words}\nsame_work = {str(same_work).lower()}"
        run = self.start("carousel-test-device", keys, "sink = true", isolation, pipeline=f"fps = {FPS}\n")
        seed, done = random.randrange(2**32), 0
        chosen = random.Random(seed)
        try:
            # With kills before the first frame there would be no states.
            wait_for("the first frames", lambda: self.frames() > 20, 60)
            began = time.monotonic()
            while done < kills and time.monotonic() - began < limit_s:
                had = self.frames()
                wait_for("the next frames", lambda h=had: self.frames() > h + 5, 60)
                stage = chosen.choice(("numbers", "middle"))
                wait_for("a stage to kill", lambda s=stage: self.kill(s), 60)
                done += 1
                time.sleep(chosen.random() / 20)
            took = time.monotonic() - began
            wait_for("the end", lambda: self.carousel("down").returncode == 0, 60)
        except BaseException:
            end_process(run)
            raise
        report = self.finish(run)
        found = hashes(report, 0)
        damage = [report[key] for key in ("lost", "repeated", "torn")]
        whole = len(found) == report["frames"] and found == reference(len(found)) and damage == [0, 0, 0] and not report["state_lost_at"]
        enough = done == kills and report["restarts"] >= kills / 2
        name = isolation + (", graphs" if same_work else "")
        row = (f"{name:<16} {done:>4} of {kills:<4} {report['restarts']:>8} {report['frames']:>7} {took:>6.0f}   {damage}   "
               f"{'equal' if whole else 'DIFFERENT'}   seed {seed}")
        return row, whole and enough

    def check_all_kills(self, kills, words):
        calm = Runs(self.programs, os.path.join(self.folder, "calm"))
        os.mkdir(calm.folder)
        running, found = calm.reference(REFERENCE_FRAMES), []

        def reference(frames):
            if not found:
                found.extend(hashes(calm.finish(running), 0))
            if frames > len(found):
                found[:] = hashes(calm.finish(calm.reference(frames)), 0)
            return found[:frames]
        rows = []
        try:
            for isolation, number, same_work, limit_s in (("process", kills, False, 40), ("mps", kills, False, 40),
                                                          ("process", max(1, kills // 5), True, 10)):
                rows.append(self.check_kills(isolation, number, words, same_work, limit_s, reference))
                print("done: " + rows[-1][0], flush=True)
        finally:
            end_process(running)
        print("isolation          kills       restarts  frames  seconds  lost, repeated, torn   states", *(row for row, _ in rows), sep="\n",
              flush=True)
        return all(right for _, right in rows)

    def check_checkpoints(self, words):
        every = 'checkpoint_every = 100\ncheckpoint_to = "kept"\nfps = 300\n'
        keys = f"remembers = {words}"
        run = self.start("carousel-test-device", keys, "sink = true", "process", pipeline=every)
        try:
            wait_for("a checkpoint", lambda: self.newest_checkpoint() >= 200, 60)
            if not self.ask({"type": "rebuild"})["ok"]:
                sys.exit("the rebuild is refused")
            at = self.newest_checkpoint()
            wait_for("a checkpoint after the rebuild", lambda: self.newest_checkpoint() >= at + 200, 60)
            rows = self.ask({"type": "ps"})["stages"]
        finally:
            run.kill()
            run.wait(10)
        for row in rows:
            os.kill(row["pid"], signal.SIGKILL)
        # Otherwise the next supervisor would take over a run whose stages are about to end.
        wait_for("the end of the stages", lambda: not any(os.path.exists(f"/proc/{row['pid']}/exe") for row in rows), 30)
        before, options = self.newest_checkpoint(), ("--fresh", "--first", "checkpoint")
        run = self.start("carousel-test-device", keys, "sink = true", "process", options, every)
        try:
            wait_for("frames after the checkpoint", lambda: self.frames() > before + 20, 60)
        finally:
            run.send_signal(signal.SIGINT)
        first = self.finish(run)["frames"]
        if self.newest_checkpoint() != first:
            sys.exit(f"the run was stopped at frame {first}, and its newest checkpoint is for {self.newest_checkpoint()}")
        frames = str(first + 300)
        options = (*options, "--frames", frames)
        report = self.finish(self.start("carousel-test-device", keys, "sink = true", "process", options, every))
        found = hashes(report, first)
        expected = hashes(self.finish(self.start("carousel-test-number", "state = true", "sink = true", "process",
                                                 ("--device", "cpu", "--frames", frames))), first)
        right = found == expected and len(found) == 300 and report["first"] == first and not report["state_lost_at"]
        print(f"checkpoint for frame {first}, after a rebuild, the death of all processes and a stop: {'whole' if right else 'DIFFERS'}", flush=True)
        if not right:
            sys.exit(f"{len(found)} and {len(expected)} hashes, from {report['first']}, states lost at {report['state_lost_at']}")
        with_files = self.frame_time_ms(words, 0, 2, 'checkpoint_every = 10\ncheckpoint_to = "kept"\n')
        print(f"{with_files:.3f} ms per frame with a checkpoint every 10 frames, {self.frame_time_ms(words, 0, 2):.3f} ms without", flush=True)

    def frame_time_ms(self, words, buffers, seconds, pipeline=""):
        """Time per frame of a pipeline whose stages do nothing but this. buffers: of a stage's own; 0: a state."""
        run = self.start("carousel-test-device", f"remembers = {words}\nscratch = {buffers}", "sink = true", "mps",
                         pipeline=pipeline)
        try:
            wait_for("the first frames", lambda: self.frames() > 50, 60)
            time.sleep(1)   # until then the stages find their depth
            first, began = self.frames(), time.monotonic()
            time.sleep(seconds)
            frames, took = self.frames() - first, time.monotonic() - began
            self.carousel("down")
        finally:
            if run.poll() is None:
                run.terminate()
        self.finish(run)
        return 1000 * took / frames

    def frames(self):
        try:
            return self.ask({"type": "ps"})["pipeline"]["frames"]
        except (OSError, KeyError):   # before the first process, and at the end
            return 0

    def compare_time(self, words, seconds, rounds):
        """Rounds of all cases in turns, so that each ratio is of neighbours in time."""
        cases = {"2 own": (words, 2), "16 own": (words, 16), "state": (words, 0)}
        times = {name: [] for name in cases}
        for _ in range(rounds):
            for name, case in cases.items():
                times[name].append(self.frame_time_ms(*case, seconds))
        print(f"ms per frame, {rounds} rounds, {words * 8} bytes")
        for name, found in times.items():
            print(f"{name:>16}: median {statistics.median(found):.4f} ({min(found):.4f} to {max(found):.4f})")
        for name, other in (("16 own", "state"), ("2 own", "state")):
            ratios = sorted(b / a for a, b in zip(times[name], times[other]))
            print(f"{other} / {name}: median {100 * (statistics.median(ratios) - 1):+.1f} % ({100 * (ratios[0] - 1):+.1f} to "
                  f"{100 * (ratios[-1] - 1):+.1f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--parts", default="kills,checkpoints,time")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    require_gpu("cuda:0")
    folder = tempfile.mkdtemp(prefix="carousel-state-gpu-")
    try:
        runs = Runs(a.programs, folder)
        right = "kills" not in a.parts or runs.check_all_kills(a.kills, a.words)
        if "checkpoints" in a.parts:
            runs.check_checkpoints(a.words)
        if "time" in a.parts:
            runs.compare_time(a.words, a.seconds, a.rounds)
    finally:
        shutil.rmtree(folder, True)
    if not right:
        sys.exit("a part with kills has other states, or too few kills")


if __name__ == "__main__":
    main()
