"""`--out x.mp4` of a real run: its display is killed again and again, then all of its processes.
Usage: test_film.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TICKS = 1000   # in the film's time scale, per frame


def boxes(data, at=0, end=None):
    """(kind, body, whole) of each box; a truncated one comes last, with whole False."""
    end = len(data) if end is None else end
    while at + 8 <= end:
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:min(at + size, end)], at + size <= end
        at += size


def frames_of(path):
    """The numbers of the frames in a film, in the file's order; a truncated fragment at its end doesn't count."""
    with open(path, "rb") as f:
        data = f.read()
    found, time_ = [], None
    for kind, body, whole in boxes(data):
        if kind == b"moof" and whole:
            traf = next(b for k, b, _ in boxes(body) if k == b"traf")
            tfdt = next(b for k, b, _ in boxes(traf) if k == b"tfdt")
            time_ = struct.unpack(">Q", tfdt[4:12])[0]
        elif kind == b"mdat" and whole and time_ is not None:
            found.append(time_ // TICKS)
            time_ = None
    return found


class Film(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-film-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "CAROUSEL_LOG": "warning"}
        self.film = os.path.join(self.folder, "x.mp4")

    def start(self, *more):
        log = open(os.path.join(self.folder, "log.txt"), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([os.path.join(PROGRAMS, "carousel"), "run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu", "--size",
                                    "160x90", "--set", "geometry.triangles=2000", "--out", self.film, "--no-color", *more],
                                   env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def log(self):
        with open(os.path.join(self.folder, "log.txt"), encoding="utf-8") as f:
            return f.read()

    def carousel(self, *words):
        return subprocess.run([os.path.join(PROGRAMS, "carousel"), *words], env=self.environment, capture_output=True, text=True, timeout=30, check=False)

    def wait_for_frames(self, count):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if os.path.exists(self.film) and len(frames_of(self.film)) >= count:
                return
            time.sleep(0.02)
        raise AssertionError(f"{count} frames in the film: not within 30 s\n" + self.log())

    def decoded(self):
        """The number of pictures that a player decodes from it; None if there is no player."""
        if shutil.which("ffprobe") is None:
            return None
        out = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries", "stream=nb_read_frames,width,height",
                              "-of", "json", self.film], capture_output=True, text=True, timeout=60, check=True)
        stream, = json.loads(out.stdout)["streams"]
        self.assertEqual((stream["width"], stream["height"]), (160, 90))
        return int(stream["nb_read_frames"])

    def test_a_display_that_is_killed_again_and_again_leaves_every_frame_once(self):
        report = os.path.join(self.folder, "report.json")
        with open(self.film, "wb") as f:
            f.write(b"what an earlier run has left")
        run = self.start("--frames", "200", "--fps", "60", "--report", report)
        for k in range(5):
            self.wait_for_frames(10 + 30 * k)
            done = self.carousel("kill", "display")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run.wait(60), 0, self.log())
        with open(report, encoding="utf-8") as f:
            summary = json.load(f)
        self.assertEqual([summary[k] for k in ("frames", "lost", "repeated", "torn")], [200, 0, 0, 0])
        self.assertEqual(frames_of(self.film), list(range(200)))
        self.assertIn(self.decoded(), (200, None))
        self.assertEqual([n for n in os.listdir(self.folder) if ".part" in n], [])
        self.assertIn(self.film, self.log())   # the closing lines say where it is

    def test_when_everybody_is_killed_the_film_can_be_played(self):
        run = self.start("--fps", "60")
        self.wait_for_frames(40)
        pids = [s["pid"] for s in json.loads(self.carousel("ps", "--json").stdout)["stages"]]
        for pid in (run.pid, *pids):
            os.kill(pid, signal.SIGKILL)
        run.wait()
        self.carousel("clean")
        frames = frames_of(self.film)
        self.assertEqual(frames, list(range(len(frames))))
        self.assertGreaterEqual(len(frames), 40)
        seen = self.decoded()
        self.assertTrue(seen is None or seen in (len(frames), len(frames) + 1), (seen, len(frames)))


if __name__ == "__main__":
    if not os.path.exists(os.path.join(PROGRAMS, "libcarousel-film.so")):
        skip("this build can't write films: ffmpeg's libraries were not there")
    unittest.main(argv=sys.argv[:1], verbosity=2)
