"""Recordings on a full disk. Usage: test_recording_files.py FOLDER_OF_PROGRAMS
PIPELINES_FOLDER [RecordingFiles | OutsideRecordings]"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from small_disk import NAMESPACE, need_mounts  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEMO = os.path.join(PIPELINES, "demo.toml")


def text_of(path):
    if not os.path.exists(path):
        return ""
    with open(path) as f:
        return f.read()


class Recordings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-recordings-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)
        os.mkdir(os.path.join(self.folder, "small"))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")}


class RecordingFiles(Recordings):
    def record(self, to, frames):
        return [os.path.join(PROGRAMS, "carousel"), "run", DEMO, "--device", "cpu", "--size", "160x90", "--set", "geometry.triangles=500",
                "--frames", str(frames), "--out", "", "--no-color", "--record", "fragment,vertex", "--record-to", to,
                "--set", "record_compression=none", "--report", os.path.join(self.folder, "report.json")]

    def test_a_full_disk_holds_the_recorder_and_harms_no_frame(self):
        small = os.path.join(self.folder, "small")
        # 100 frames of 57,600 bytes and more: the disk is full after half of them, until the file `filler` goes
        script = ('mount -t tmpfs -o size=12m tmpfs small && dd if=/dev/zero of=small/filler bs=65536 count=144 2>/dev/null; '
                  'env --default-signal=INT "$@" 2>log & '
                  'echo $! >pid; (while [ ! -e room ] && [ ! -e over ]; do sleep 0.1; done; rm small/filler) & wait $(cat pid); code=$?; '
                  'cp small/run.mcap whole.mcap; touch over; wait; exit $code')
        command = [*NAMESPACE, "sh", "-c", script, "sh", *self.record(os.path.join(small, "run.mcap"), 100)]
        run = subprocess.Popen(command, env=self.environment, cwd=self.folder)
        self.addCleanup(run.kill)
        log = os.path.join(self.folder, "log")
        until = time.monotonic() + 30
        while "waits for a full disk" not in text_of(log):
            self.assertLess(time.monotonic(), until, text_of(log))
            time.sleep(0.05)
        open(os.path.join(self.folder, "room"), "w").close()
        self.assertEqual(run.wait(60), 0, text_of(log))
        with open(os.path.join(self.folder, "report.json")) as f:
            report = json.load(f)
        self.assertEqual((report["lost"], report["repeated"], report["restarts"]), (0, 0, 0))
        self.assertIn("100 frames", text_of(log))
        with open(os.path.join(self.folder, "whole.mcap"), "rb") as f:
            self.assertTrue(f.read().endswith(b"\x89MCAP0\r\n"))


class OutsideRecordings(Recordings):
    def record_outside(self, name, frames, *words):
        """Records a run by `carousel record` onto a disk that is full after some dozen frames, then once more with enough room. Returns both
        exit codes and that of the run, and the output of both."""
        file = os.path.join(self.folder, "outside.toml")
        with open(DEMO, encoding="utf-8") as demo, open(file, "w", encoding="utf-8") as f:
            f.write(re.sub(r'name *= *"demo"', f'name = "{name}"', demo.read(), count=1))
            f.write('[[stage]]\nname = "archive"\nrun = "port"\ninputs = ["fragment"]\n' if words[0] == "archive" else "")
        script = ('mount -t tmpfs -o size=16m tmpfs small || exit 1; dd if=/dev/zero of=small/filler bs=65536 count=244 2>/dev/null; '
                  'carousel=$1; file=$2; frames=$3; shift 3; '
                  '"$carousel" run "$file" --device cpu --size 160x90 --set geometry.triangles=500 --out "" --no-color --frames $frames --fps 60 '
                  '--report report.json 2>log & run=$!; '
                  '"$carousel" record "$@" 2>said; echo $? >codes; cp small/run.mcap first.mcap; rm small/filler; '
                  '"$carousel" record "$@" >>said 2>&1; echo $? >>codes; wait $run; echo $? >>codes; cp small/run.mcap whole.mcap')
        done = subprocess.run([*NAMESPACE, "sh", "-c", script, "sh", os.path.join(PROGRAMS, "carousel"), file, str(frames), *words, "--out",
                               "small/run.mcap", "-p", name, "--wait", "20", "--compression", "none"], env=self.environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(code) for code in text_of(os.path.join(self.folder, "codes")).split()], text_of(os.path.join(self.folder, "said"))

    def played(self, file, keys=""):
        """Plays it into a display; returns the report and the run's output."""
        text = f"""[pipeline]\nname = "played"\ndevice = "cpu"\nsize = [160, 90]\n[[stage]]\nname = "tape"\nrun = "carousel-replay"\nfile = "{file}"\n{keys}
[[stage]]\nname = "display"\nrun = "carousel-display"\ninputs = ["tape"]\nout = ""\n"""
        path = os.path.join(self.folder, "played.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run([os.path.join(PROGRAMS, "carousel"), "run", path, "--no-color", "--report", path + ".json"], env=self.environment,
                              cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(text_of(path + ".json")), done.stderr

    def check_ended_by_full_disk(self, output, meanwhile):
        self.assertIn("small/run.mcap: No space left on device; free some space on that disk. The frames in the file are complete: fix the cause, then "
                      f"run the same command again; {meanwhile}", output)
        self.assertRegex(output, r"continuing .*: 1[0-9] frames are in it; 0 bytes of an incomplete frame are removed")
        report, text = self.played("first.mcap")
        self.assertIn(f"its {report['frames']} complete frames are played", text)
        self.assertIn(f"run.mcap: {report['frames']} frames are in it", output)

    def test_a_full_disk_ends_who_records_at_a_port_and_the_run_waits_for_the_next_one(self):
        codes, output = self.record_outside("outside", 120, "archive")
        self.assertEqual(codes, [75, 0, 0], output)
        self.check_ended_by_full_disk(output, "until then its port has no program")
        run = json.loads(text_of(os.path.join(self.folder, "report.json")))
        self.assertEqual((run["frames"], run["lost"], run["repeated"], run["restarts"]), (120, 0, 0, 0))
        report, _ = self.played("whole.mcap")
        self.assertEqual((report["frames"], report["image_hash"]), (120, run["image_hash"]))

    def test_a_full_disk_ends_who_records_the_newest_frames_and_the_run_does_not_wait(self):
        codes, output = self.record_outside("newest", 240, "fragment", "--latest")
        self.assertEqual(codes, [75, 0, 0], output)
        self.check_ended_by_full_disk(output, "the frames until then are not recorded")
        self.assertGreater(self.played("whole.mcap")[0]["frames"], self.played("first.mcap")[0]["frames"])


if __name__ == "__main__":
    need_mounts()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
