"""A full /dev/shm and a full disk, for real: small tmpfs mounts in a separate mount namespace.
Usage: test_full_filesystems.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEMO = os.path.join(PIPELINES, "demo.toml")
NAMESPACE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


class FullFilesystems(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-full-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)
        os.mkdir(os.path.join(self.folder, "small"))

    def run_on(self, mount_at, size, *arguments, before="true"):
        """`carousel run demo.toml ARGUMENTS` where `mount_at` is a tmpfs of `size`; returns also what is left of the run there."""
        script = (f'mount -t tmpfs -o size={size} tmpfs "$1" && mount_point=$1 && shift && {before} && "$@"; code=$?; '
                  'echo "LEFT:" $(ls -A "$mount_point"); exit $code')
        command = [*NAMESPACE, "sh", "-c", script, "sh", mount_at, os.path.join(PROGRAMS, "carousel"), "run", DEMO, "--device", "cpu",
                   "--size", "320x180", "--set", "geometry.triangles=500", "--frames", "60", "--no-color", *arguments]
        environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")}
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=100)
        left = next((line[5:].split() for line in done.stdout.splitlines() if line.startswith("LEFT:")), None)
        self.assertIsNotNone(left, done.stdout + done.stderr)
        return done.returncode, done.stdout + done.stderr, left

    def nothing_runs(self):
        runtime = os.path.join(self.folder, "runtime", "carousel")
        self.assertEqual(os.listdir(runtime) if os.path.isdir(runtime) else [], [])
        mine = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if self.folder.encode() in f.read():
                        mine.append(pid)
            except OSError:
                pass
        self.assertEqual(mine, [])

    def test_a_full_dev_shm_is_one_sentence_and_leaves_nothing(self):
        code, text, left = self.run_on("/dev/shm", "64k", "--out", "")
        self.assertNotIn(code, (0, -6, -7, -11, 135, 139), text)  # no SIGBUS on the first touch
        self.assertIn("/dev/shm", text)
        self.assertEqual(left, [])
        self.nothing_runs()

    def test_a_dev_shm_with_room_is_enough(self):
        code, text, left = self.run_on("/dev/shm", "64m", "--out", "")
        self.assertEqual(code, 0, text)
        self.assertEqual(left, [])

    def start_on_full_disk(self):
        """A run whose pictures fill a disk except for a file `filler`; the file `room` makes room. Returns when the run waits."""
        small, self.log = os.path.join(self.folder, "small"), os.path.join(self.folder, "log")
        script = ('mount -t tmpfs -o size=8m tmpfs small && dd if=/dev/zero of=small/filler bs=4096 count=2000 2>/dev/null; '
                  'env --default-signal=INT "$@" 2>log & '
                  'echo $! >pid; (while [ ! -e room ] && [ ! -e over ]; do sleep 0.1; done; rm small/filler) & wait $(cat pid); code=$?; '
                  'ls -A small >left; touch over; wait; exit $code')
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")}
        command = [*NAMESPACE, "sh", "-c", script, "sh", os.path.join(PROGRAMS, "carousel"), "run", DEMO, "--device", "cpu", "--size", "320x180",
                   "--set", "geometry.triangles=500", "--frames", "60", "--no-color", "--out", os.path.join(small, "frame_%05d.png"),
                   "--report", os.path.join(self.folder, "report.json")]
        run = subprocess.Popen(command, env=self.environment, cwd=self.folder)
        self.addCleanup(run.kill)
        self.wait_for(lambda: "waits for a full disk" in self.text(), run)
        return run

    def text(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def wait_for(self, holds, run, seconds=30):
        until = time.monotonic() + seconds
        while not holds():
            self.assertIsNone(run.poll(), self.text())
            self.assertLess(time.monotonic(), until, self.text())
            time.sleep(0.05)

    def ps(self):
        done = subprocess.run([os.path.join(PROGRAMS, "carousel"), "ps", "-p", "demo"], env=self.environment, capture_output=True, text=True, timeout=20)
        return done.stdout

    def report(self):
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as f:
            return json.load(f)

    def left(self):
        with open(os.path.join(self.folder, "left"), encoding="utf-8") as f:
            return f.read().split()

    def test_a_full_disk_under_the_pictures_holds_the_run_until_there_is_room(self):
        run = self.start_on_full_disk()
        self.assertIn("No space left on device", self.text())
        self.assertIn("KiB are free there", self.text())
        self.assertIn("free some space on that disk", self.text())
        self.wait_for(lambda: "waiting: full disk" in self.ps() and "! display waits for space on a full disk" in self.ps(), run)
        time.sleep(3)  # longer than frame_timeout_ms
        with open(os.path.join(self.folder, "room"), "w", encoding="utf-8"):
            pass
        code = run.wait(60)
        self.assertEqual(code, 0, self.text())
        report = self.report()
        self.assertEqual((report["frames"], report["lost"], report["repeated"], report["restarts"]), (60, 0, 0, 0), self.text())
        self.assertEqual(report["dead_letters"], [])
        self.assertEqual(len([p for p in report["problems"] if "full disk" in p["text"]]), 1, report["problems"])
        self.assertEqual(len(self.left()), 60)
        self.nothing_runs()

    def test_ctrl_c_on_a_full_disk_ends_with_75_and_the_number_of_unwritten_frames(self):
        run = self.start_on_full_disk()
        with open(os.path.join(self.folder, "pid"), encoding="utf-8") as f:
            os.kill(int(f.read()), signal.SIGINT)
        since = time.monotonic()
        code = run.wait(30)
        self.assertEqual(code, 75, self.text())
        self.assertLess(time.monotonic() - since, 10)
        report, left = self.report(), self.left()
        match = re.search(r"the disk of display is full: (\d+) frames from frame (\d+) on were started but are not written", self.text())
        self.assertIsNotNone(match, self.text())
        self.assertEqual(int(match[2]), report["frames"])
        self.assertGreater(int(match[1]), 0)
        self.assertEqual((report["ending"], report["exit_code"], report["lost"], report["repeated"]), ("disk full", 75, 0, 0))
        left.remove("filler")
        # Every frame that counts has its picture, and nothing is half-written: such a file has another name. A later frame, compressed
        # by another thread meanwhile, may have found room where an earlier one did not.
        begun = report["frames"] + int(match[1])
        self.assertLessEqual({f"frame_{n:05}.png" for n in range(report["frames"])}, set(left))
        self.assertLessEqual(set(left), {f"frame_{n:05}.png" for n in range(begun)})
        self.nothing_runs()

    def test_a_full_disk_under_the_report_is_reported_and_has_no_other_effect(self):
        small = os.path.join(self.folder, "small")
        fill = 'dd if=/dev/zero of="$mount_point/filler" bs=4096 count=64 2>/dev/null; true'
        code, text, left = self.run_on(small, "64k", "--out", "", "--report", os.path.join(small, "report.json"), before=f"{{ {fill}; }}")
        self.assertNotEqual(code, 0, text)
        self.assertIn("--report FILE", text)
        self.assertIn("No space left on device", text)
        self.nothing_runs()


if __name__ == "__main__":
    probe = subprocess.run([*NAMESPACE, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /dev/shm"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip("no mount namespace here: " + (probe.stderr.strip() or "unshare failed"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
