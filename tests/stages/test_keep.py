"""`keep`: how many pictures a real run leaves, with displays killed meanwhile. Usage: test_keep.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
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
SEED = seed(41)


class Keep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-keep-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.pictures = os.path.join(self.folder, "pictures")
        os.mkdir(self.pictures)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        self.report = os.path.join(self.folder, "report.json")

    def start(self, *more):
        run = subprocess.Popen([CAROUSEL, "run", DEMO, "--device", "cpu", "--size", "96x64", "--set", "geometry.triangles=500", "--no-color",
                                "--report", self.report, *more], env=self.environment, cwd=self.folder, stderr=subprocess.DEVNULL)
        self.addCleanup(end_process, run)
        return run

    def display(self):
        out = subprocess.run([CAROUSEL, "ps", "--json"], env=self.environment, capture_output=True, timeout=20, check=False).stdout
        return (json.loads(out or "{}").get("stages") or [{}])[-1]

    def names(self):
        return sorted(os.listdir(self.pictures))

    def test_an_endless_run_leaves_the_newest_after_kills_of_its_display_and_nothing_of_others_is_gone(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        older_picture = "p_00003.png"   # a picture of an older run, which this run's frame 3 overwrites
        kept = ["notes.txt", "p_3.png", "p_99999.png"]
        for name in (older_picture, *kept):
            with open(os.path.join(self.pictures, name), "w", encoding="utf-8") as f:
                f.write("older")
        time.sleep(0.05)
        run = self.start("--fps", "120", "--keep", "20", "--out", os.path.join(self.pictures, "p_%05d.png"))
        for _ in range(6):
            before = wait_for("a display at work", lambda: self.display().get("state") == "running" and self.display())
            wait_for("frames", lambda: self.display()["frames"] > before["frames"] + 25)
            time.sleep(dice.uniform(0, 0.05))
            os.kill(before["pid"], signal.SIGKILL)
            wait_for("its successor", lambda: self.display().get("pid") not in (None, before["pid"]))
        wait_for("frames", lambda: self.display()["frames"] > before["frames"] + 25)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 0)
        with open(self.report, encoding="utf-8") as f:
            report = json.load(f)
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])
        frames = report["frames"]
        self.assertGreater(frames, 150)
        self.assertEqual(self.names(), sorted(kept + [f"p_{n:05d}.png" for n in range(frames - 20, frames)]))

    def test_a_run_of_n_frames_keeps_all_pictures_and_the_endless_demo_a_hundred(self):
        self.assertEqual(self.start("--frames", "130", "--out", os.path.join(self.pictures, "p_%05d.png")).wait(60), 0)
        self.assertEqual(len(self.names()), 130)
        run = self.start("--out", os.path.join(self.folder, "endless", "p_%05d.png"))
        wait_for("frames", lambda: self.display().get("frames", 0) > 130)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 0)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "endless"))), 100)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
