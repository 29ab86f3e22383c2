"""Recordings are read by an independent library, @mcap/core, and their messages by protobufjs. Usage:
test_recording_readers.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER

Skipped, with the reason, if node or a library is missing:
  npm install --prefix FOLDER @mcap/core protobufjs && NODE_PATH=FOLDER/node_modules ctest -R "library that isn't ours"
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import SKIPPED, end_process, skip  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
READER = ["node", os.path.join(HERE, "read_mcap.cjs")]


class RecordingReaders(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-readers-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.path = os.path.join(self.folder, "run.mcap")

    def carousel(self, *words):
        return subprocess.Popen([os.path.join(PROGRAMS, "carousel"), *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env={**os.environ, "XDG_RUNTIME_DIR": self.folder})

    def recorder(self):
        """The pid of the recorder; None if it has just been killed."""
        status, _ = self.carousel("ps", "--json").communicate(timeout=20)
        stages = json.loads(status).get("stages", []) if status[:1] == "{" else []
        return next((s["pid"] for s in stages if s["name"] == "record" and s["state"] == "running"), None)

    def record(self, file, frames, rings, *more, kills=0):
        """The contents that the library finds in a recording of these rings. Uncompressed: the library has
        neither lz4 nor zstd."""
        run = self.carousel("run", file, "--device", "cpu", "--frames", str(frames), "--no-color", "--record", rings, "--record-to", self.path,
                            "--set", "record_compression=none", *more)
        self.addCleanup(end_process, run)
        killed = set()
        while len(killed) < kills:
            time.sleep(0.3)
            pid = self.recorder()
            if pid and pid not in killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            self.assertIsNone(run.poll(), "the run is over before its recorder was killed so often")
        output, _ = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, output)
        self.assertIn(f"; {kills} restarts", output)
        done = subprocess.run([*READER, self.path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_picture(self, found, ring, encoding, width, height, step):
        """Checks that the last message of a ring is such a foxglove.RawImage; returns its bytes."""
        image = found["last"][ring]
        self.assertEqual({key: image[key] for key in ("frame_id", "encoding", "width", "height", "step")},
                         {"frame_id": ring, "encoding": encoding, "width": width, "height": height, "step": step})
        time_ns = int(image["timestamp"]["seconds"]) * 10**9 + image["timestamp"].get("nanos", 0)
        offset_ns = int(found["metadata"]["carousel.recording"]["offset_ns"])
        self.assertEqual(time_ns, int(image["carousel"]["born_ns"]) + offset_ns)
        self.assertEqual(time_ns, int(found["log_time"][ring]))
        picture = base64.b64decode(image["data"])
        self.assertEqual(len(picture), height * step)
        return picture

    def carries(self, more=""):
        """A pipeline whose frames carry metadata."""
        file = os.path.join(self.folder, "carries.toml")
        stage = '[[stage]]\nname = "{0}"\nrun = "{1}/carousel-test-number"\ncarries = true\n{2}' + more
        with open(file, "w", encoding="utf-8") as f:
            f.write('[pipeline]\nname = "carries"\n' + stage.format("numbers", PROGRAMS, "")
                    + stage.format("middle", PROGRAMS, 'inputs = ["numbers"]\n')
                    + stage.format("sink", PROGRAMS, 'inputs = ["middle"]\nsink = true\n'))
        return file

    def test_it_finds_every_frame_of_both_rings_by_index_and_check_sums(self):
        found = self.record(os.path.join(PIPELINES, "demo.toml"), 30, "fragment,vertex", "--size", "160x90", "--set", "geometry.triangles=500", "--out", "")
        self.assertEqual(found["topics"], {"fragment": 30, "vertex": 30})
        self.assertEqual(found["schemas"], ["carousel.Frame", "foxglove.RawImage"])
        self.assertEqual(found["chunks"], 30)
        self.assertEqual(found["metadata"]["carousel.recording"]["version"], "1")
        picture = self.check_picture(found, "fragment", "rgba8", 160, 90, 640)
        self.assertGreater(len(set(picture)), 2)   # a lit mesh
        self.assertEqual(set(picture[3::4]), {255})
        frame = found["last"]["fragment"]["carousel"]
        self.assertEqual(frame["frame_number"], "29")
        self.assertNotIn("capture_ns", frame)   # not set by its source
        self.assertEqual(frame["born_ns"], found["last"]["vertex"]["born_ns"])

    def test_it_finds_every_frame_once_where_the_recorder_was_killed(self):
        found = self.record(os.path.join(PIPELINES, "demo.toml"), 240, "fragment,vertex", "--size", "160x90", "--set", "geometry.triangles=500",
                            "--out", "", "--fps", "30", kills=4)
        self.assertEqual(found["topics"], {"fragment": 240, "vertex": 240})

    def test_it_finds_what_frames_carry_by_the_description_that_the_file_has_of_them(self):
        began = time.time_ns()
        found = self.record(self.carries(), 20, "middle")
        frame = found["last"]["middle"]
        # The wall clock by the one offset that the file keeps; the frame itself has this machine's clock.
        log_time = int(found["log_time"]["middle"])
        self.assertEqual(log_time, int(frame["born_ns"]) + int(found["metadata"]["carousel.recording"]["offset_ns"]))
        self.assertTrue(began < log_time < time.time_ns(), (began, log_time))
        self.assertEqual(frame["frame_number"], "19")
        self.assertEqual({e["key"]: e.get("natural") or e.get("text") for e in frame["metadata"]}, {"number": "19", "by": "middle", "twice": "38"})
        self.assertGreater(int(frame["capture_ns"]), 0)
        used, = [p["used"] for p in frame["planes"] if p["name"] == "list"]
        self.assertEqual(used, [str(19 * 7 % 101), "2"])

    def test_it_finds_pictures_with_what_they_carry_and_as_many_rows_as_are_in_use(self):
        began_ns = time.monotonic_ns()
        found = self.record(self.carries("picture = true\n"), 20, "numbers,middle")
        self.assertEqual(set(found["schemas"]), {"foxglove.RawImage"})
        for ring in ("numbers", "middle"):
            self.assertEqual(self.check_picture(found, ring, "rgb8", 5, 19 % 6 + 1, 15), bytes(range(19, 19 + 30)))
        first, frame = (found["last"][ring]["carousel"] for ring in ("numbers", "middle"))
        self.assertEqual(frame["frame_number"], "19")
        self.assertEqual(frame["capture_ns"], first["capture_ns"])
        capture_ns = int(frame["capture_ns"])   # 5 ms before its source has set it
        self.assertTrue(began_ns < capture_ns < time.monotonic_ns(), (began_ns, capture_ns))
        self.assertGreaterEqual(capture_ns, int(frame["born_ns"]) - 5_000_000)
        self.assertEqual({e["key"]: e.get("natural") or e.get("text") for e in frame["metadata"]},
                         {"number": "19", "by": "middle", "twice": "38"})
        planes = {p["name"]: p for p in frame["planes"]}
        self.assertEqual(set(planes), {"value", "list", "picture"})
        self.assertEqual(planes["picture"], {"name": "picture", "used": ["2", "5", "3"]})   # its bytes are the image's
        self.assertEqual(base64.b64decode(planes["value"]["data"]), (19 * 1000 * 3 + 1).to_bytes(8, "little"))


if __name__ == "__main__":
    if shutil.which("node") is None:
        skip("node is not there (apt-get install nodejs)")
    probe = subprocess.run([*READER, "--there"], capture_output=True, text=True, timeout=60)
    if probe.returncode == SKIPPED:
        skip(probe.stderr.strip())
    unittest.main(argv=sys.argv[:1], verbosity=2)
