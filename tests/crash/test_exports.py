"""Recordings for other tools: small JPEG pictures, `carousel export`, `carousel recover`, pictures of other programs' files.
Usage: test_exports.py FOLDER_OF_PROGRAMS SOURCE_FOLDER"""
import collections
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS, SOURCES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FRAMES, SIZE = 24, (160, 90)


def messages_of(path):
    """The numbers of the messages of each channel of an uncompressed recording; and the data of the last one."""
    found, last = collections.defaultdict(list), {}
    with open(path, "rb") as f:
        data = f.read()

    def read(at, end):
        while at + 9 <= end:
            code, length = struct.unpack_from("<BQ", data, at)
            at += 9
            if code == 6:
                name, = struct.unpack_from("<I", data, at + 28)
                read(at + 40 + name, at + length)
            elif code == 5:
                channel, number = struct.unpack_from("<HI", data, at)
                found[channel].append(number)
                last[channel] = data[at + 22:at + length]
            elif code == 15:
                return
            at += length
    read(8, len(data))
    return found, last


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="carousel-exports-")
        cls.environment = {**os.environ, "XDG_RUNTIME_DIR": cls.folder, "CAROUSEL_LOG": "warning"}
        cls.recording = os.path.join(cls.folder, "run.mcap")
        log = os.path.join(cls.folder, "log")
        with open(log, "wb") as out:
            run = subprocess.Popen([os.path.join(PROGRAMS, "carousel"), "run", os.path.join(SOURCES, "pipelines", "demo.toml"), "--device", "cpu",
                                    "--size", f"{SIZE[0]}x{SIZE[1]}", "--set", "geometry.triangles=500", "--frames", str(FRAMES), "--fps", "40",
                                    "--out", "", "--no-color", "--record", "fragment", "--record-to", cls.recording, "--set", "record_images=true",
                                    "--set", "record_compression=none"], env=cls.environment, cwd=cls.folder, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=out)
        end = time.monotonic() + 20   # the recorder is killed once, in the middle
        while run.poll() is None and time.monotonic() < end and not (os.path.exists(cls.recording) and os.path.getsize(cls.recording) > 500_000):
            time.sleep(0.005)
        subprocess.run([os.path.join(PROGRAMS, "carousel"), "kill", "record", "-p", "demo"], env=cls.environment, check=False, timeout=20,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        code = run.wait(60)
        if code != 0:
            with open(log, encoding="utf-8") as f:
                raise AssertionError(f"{code}: {f.read()}")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, True)

    def carousel(self, *words, code=0):
        done = subprocess.run([os.path.join(PROGRAMS, "carousel"), *words], env=self.environment, cwd=self.folder, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def picture(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def test_each_frame_has_one_small_picture_although_the_recorder_was_killed(self):
        found, last = messages_of(self.recording)
        self.assertEqual(found, {1: list(range(FRAMES)), 2: list(range(FRAMES))})
        at = last[2].index(b"\xff\xd8\xff")
        self.assertIn(b"\xff\xd9", last[2][at:])
        self.assertIn(b"jpeg", last[2])

    def test_a_recording_becomes_pictures_arrays_and_a_film(self):
        self.carousel("export", "run.mcap", "--to", "png", "--out", "all_%03d.png")
        self.assertEqual(sum(name.startswith("all_") for name in os.listdir(self.folder)), FRAMES)
        self.carousel("export", "run.mcap", "--to", "npy", "--out", "array_%d.npy", "--first", "5", "--count", "1")
        array = self.picture("array_0.npy")
        self.assertIn(array[-SIZE[0] * SIZE[1] * 4:], self.picture("run.mcap"))   # the pixels as they were recorded
        if os.path.exists(os.path.join(PROGRAMS, "libcarousel-film.so")):
            self.carousel("export", "run.mcap", "--to", "mp4", "--fps", "25")
            if shutil.which("ffprobe"):
                shown = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames,r_frame_rate", "-of", "csv=p=0",
                                        os.path.join(self.folder, "run.mp4")], capture_output=True, text=True, timeout=30, check=False).stdout
                self.assertEqual(shown.strip(), f"25/1,{FRAMES}")
        self.assertIn("names end with .png", self.carousel("export", "run.mcap", "--to", "png", "--out", "x.jpg", code=2))
        self.assertIn("has the rings fragment", self.carousel("export", "run.mcap", "--to", "png", "--ring", "vertex", code=2))

    def test_a_truncated_recording_is_recovered_and_exported_like_the_whole_one(self):
        whole = self.picture("run.mcap")
        with open(os.path.join(self.folder, "cut.mcap"), "wb") as f:
            f.write(whole[:len(whole) * 2 // 3])
        shown = self.carousel("recover", "cut.mcap", "--out", "recovered.mcap")
        found, _ = messages_of(os.path.join(self.folder, "recovered.mcap"))
        self.assertTrue(10 < len(found[1]) < FRAMES, shown)
        self.assertEqual(found[1], list(range(len(found[1]))))
        self.assertTrue(self.picture("recovered.mcap").endswith(b"\x89MCAP0\r\n"))
        for file in ("cut", "recovered"):
            self.carousel("export", f"{file}.mcap", "--to", "png", "--out", f"{file}_%d.png", "--first", "7", "--count", "1")
        self.assertEqual(self.picture("cut_0.png"), self.picture("recovered_0.png"))
        self.assertIn("already exists", self.carousel("recover", "cut.mcap", "--out", "recovered.mcap", code=2))

    def test_pictures_of_another_programs_file_are_exported(self):
        shutil.copy(os.path.join(SOURCES, "tests", "fuzz", "corpus", "mcap", "external_cut"), os.path.join(self.folder, "other.mcap"))
        shown = self.carousel("recover", "other.mcap", "--out", "other_whole.mcap")
        self.assertIn("4 messages of 1 channels", shown)
        self.carousel("export", "other_whole.mcap", "--to", "png", "--out", "other_%d.png", "--count", "2")   # bgr8, then yuv422
        self.assertTrue(self.picture("other_1.png").startswith(b"\x89PNG"))
        shown = self.carousel("export", "other_whole.mcap", "--to", "png", "--out", "more_%d.png", code=4)   # the others have other formats
        self.assertIn("in mono16, but the first one has carousel.image.rgba8", shown)
        self.assertIn("0 restarts", shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
