"""Recordings on a full disk, and read by a library that isn't ours. Usage: test_recording_files.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
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
NOT_THERE = []


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

    def test_a_library_that_is_not_ours_reads_it(self):
        if shutil.which("node") is None:
            NOT_THERE.append("node is not there")
            return
        path = os.path.join(self.folder, "run.mcap")
        subprocess.run(self.record(path, 30), env=self.environment, cwd=self.folder, check=True, capture_output=True, timeout=60)
        done = subprocess.run(["node", os.path.join(HERE, "read_mcap.cjs"), path], capture_output=True, text=True, timeout=60)
        if done.returncode == 77:
            NOT_THERE.append("@mcap/core is not there (npm install @mcap/core, NODE_PATH=.../node_modules)")
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["topics"], {"fragment": 30, "vertex": 30})
        self.assertEqual(found["schemas"], ["carousel.Frame", "foxglove.RawImage"])
        self.assertEqual(found["chunks"], 30)
        self.assertEqual(found["metadata"]["carousel.recording"]["version"], "1")

    def test_it_finds_what_frames_carry_by_the_description_that_the_file_has_of_them(self):
        if shutil.which("node") is None:
            return
        path, file = os.path.join(self.folder, "run.mcap"), os.path.join(self.folder, "carries.toml")
        stage = '[[stage]]\nname = "{0}"\nrun = "{1}/carousel-test-number"\ncarries = true\n{2}'
        with open(file, "w", encoding="utf-8") as f:
            f.write('[pipeline]\nname = "carries"\ndevice = "cpu"\n' + stage.format("numbers", PROGRAMS, "")
                    + stage.format("middle", PROGRAMS, 'inputs = ["numbers"]\n') + stage.format("sink", PROGRAMS, 'inputs = ["middle"]\nsink = true\n'))
        subprocess.run([os.path.join(PROGRAMS, "carousel"), "run", file, "--frames", "20", "--no-color", "--record", "middle", "--record-to", path],
                       env=self.environment, cwd=self.folder, check=True, capture_output=True, timeout=60)
        done = subprocess.run(["node", os.path.join(HERE, "read_mcap.cjs"), path], capture_output=True, text=True, timeout=60)
        last = json.loads(done.stdout)["last"] if done.returncode == 0 else None
        if last is None:
            NOT_THERE.append("@mcap/core or protobufjs is not there (npm install @mcap/core protobufjs, NODE_PATH=.../node_modules)")
            return
        frame = last["middle"]
        self.assertEqual(frame["sequence"], "19")
        self.assertEqual({e["key"]: e.get("natural") or e.get("text") for e in frame["metadata"]}, {"number": "19", "by": "middle", "twice": "38"})
        self.assertGreater(int(frame["captureNs"]), 0)
        used, = [p["used"] for p in frame["planes"] if p["name"] == "list"]
        self.assertEqual(used, [str(19 * 7 % 101), "2"])


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    if NOT_THERE:
        print("skipped in part: " + "; ".join(NOT_THERE))
