"""Recordings on a full disk. Usage: test_recording_files.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import skip  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEMO = os.path.join(PIPELINES, "demo.toml")
NAMESPACE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def text_of(path):
    if not os.path.exists(path):
        return ""
    with open(path) as f:
        return f.read()


class RecordingFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-recordings-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)
        os.mkdir(os.path.join(self.folder, "small"))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")}

    def record(self, to, frames):
        return [os.path.join(PROGRAMS, "carousel"), "run", DEMO, "--device", "cpu", "--size", "160x90", "--set", "geometry.triangles=500",
                "--frames", str(frames), "--out", "", "--no-color", "--record", "fragment,vertex", "--record-to", to,
                "--set", "record_compression=none", "--report", os.path.join(self.folder, "report.json")]

    def test_a_full_disk_holds_the_recorder_and_harms_no_frame(self):
        small = os.path.join(self.folder, "small")
        # 100 frames of 57,600 bytes and more: the disk is full after half of them, until the file `filler` goes
        script = ('mount -t tmpfs -o size=12m tmpfs small && dd if=/dev/zero of=small/filler bs=65536 count=144 2>/dev/null; "$@" 2>log & '
                  'echo $! >pid; (while [ ! -e room ] && [ ! -e over ]; do sleep 0.1; done; rm small/filler) & wait $(cat pid); code=$?; '
                  'cp small/run.mcap whole.mcap; touch over; wait; exit $code')
        command = [*NAMESPACE, "sh", "-c", script, "sh", *self.record(os.path.join(small, "run.mcap"), 100)]
        run = subprocess.Popen(command, env=self.environment, cwd=self.folder)
        self.addCleanup(run.kill)
        log = os.path.join(self.folder, "log")
        until = time.monotonic() + 30
        while "waits for a full disk" not in text_of(log):
            self.assertLess(time.monotonic(), until, text_of(log))
            if run.poll() is not None and not os.path.exists(log):
                skip("no mount namespace to be had")
            time.sleep(0.05)
        open(os.path.join(self.folder, "room"), "w").close()
        self.assertEqual(run.wait(60), 0, text_of(log))
        with open(os.path.join(self.folder, "report.json")) as f:
            report = json.load(f)
        self.assertEqual((report["lost"], report["repeated"], report["restarts"]), (0, 0, 0))
        self.assertIn("100 frames", text_of(log))
        with open(os.path.join(self.folder, "whole.mcap"), "rb") as f:
            self.assertTrue(f.read().endswith(b"\x89MCAP0\r\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
