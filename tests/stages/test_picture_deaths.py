"""Displays that encode several pictures at once are killed, or stopped, replaced and continued: each picture
is there, intact, the same as in a run without faults. Usage: test_picture_deaths.py FOLDER_OF_PROGRAMS
PIPELINES_FOLDER"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, wait_for  # noqa: E402
from seeds import seed  # noqa: E402

CAROUSEL = os.path.join(os.path.abspath(sys.argv[1]), "carousel")
DEMO = os.path.join(os.path.abspath(sys.argv[2]), "demo.toml")
SEED = seed()
FRAMES = 500


class PictureDeaths(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-deaths-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        self.report = os.path.join(self.folder, "report.json")

    def start(self, name, pattern, *more, environment=None):
        """Several threads, also on a machine of one core; pictures of several stripes."""
        self.log = os.path.join(self.folder, name + ".log")
        with open(self.log, "w", encoding="utf-8") as log:
            run = subprocess.Popen([CAROUSEL, "run", DEMO, "--device", "cpu", "--size", "400x360", "--set", "geometry.triangles=500", "--set",
                                    "display.finish_threads=4", "--no-color", "--frames", str(FRAMES), "--report", self.report,
                                    "--out", os.path.join(self.folder, name, pattern), *more],
                                   env={**self.environment, **(environment or {})}, cwd=self.folder, stderr=log)
        self.addCleanup(end_process, run)
        return run

    def display(self):
        out = subprocess.run([CAROUSEL, "ps", "--json"], env=self.environment, capture_output=True, timeout=20, check=False).stdout
        return (json.loads(out or "{}").get("stages") or [{}])[-1]

    def pictures(self, name):
        found = {}
        for file in sorted(os.listdir(os.path.join(self.folder, name))):
            with open(os.path.join(self.folder, name, file), "rb") as f:
                found[file] = hashlib.sha256(f.read()).hexdigest()
        return found

    def end(self, run):
        code = run.wait(90)
        with open(self.log, encoding="utf-8") as f:
            self.assertEqual(code, 0, f.read())
        with open(self.report, encoding="utf-8") as f:
            report = json.load(f)
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [FRAMES, 0, 0, 0])
        self.assertEqual(report["dead_letters"], [])
        return report

    def test_whatever_kills_the_display_each_picture_is_there_and_whole(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        calm = self.end(self.start("calm", "p_%04d.png"))
        expected = self.pictures("calm")
        self.assertEqual(sorted(expected), [f"p_{n:04d}.png" for n in range(FRAMES)])

        # The supervisor's own kill is delayed, so that a stopped display continues concurrently with its successor.
        run = self.start("wild", "p_%04d.png", "--fps", "90", "--set", "frame_timeout_ms=500", environment={"CAROUSEL_TEST_KILL_DELAY_MS": "400"})
        for how in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
            before = wait_for("a display at work", lambda: self.display().get("state") == "running" and self.display())
            wait_for("frames", lambda: self.display()["frames"] > before["frames"] + 30)
            time.sleep(dice.uniform(0, 0.03))
            os.kill(before["pid"], how)
            wait_for("its successor", lambda: self.display().get("pid") not in (None, before["pid"]))
            if how == signal.SIGSTOP:
                os.kill(before["pid"], signal.SIGCONT)
        report = self.end(run)
        self.assertGreaterEqual(report["restarts"], 3)
        self.assertEqual(report["image_hash"], calm["image_hash"])
        self.assertEqual(self.pictures("wild"), expected)   # byte for byte, and no additional file

    def test_raw_pictures_are_as_large_as_their_pixels(self):
        self.end(self.start("raw", "p_%d.npy"))
        sizes = {os.path.getsize(os.path.join(self.folder, "raw", f"p_{n}.npy")) for n in range(FRAMES)}
        self.assertEqual(sizes, {128 + 400 * 360 * 4})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
