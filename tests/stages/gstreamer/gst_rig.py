"""A pipeline with a writing and a reading port, and gst-launch-1.0 at them."""
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import end_process, skip, wait_for  # noqa: E402

PORTS = """[pipeline]
name = "gst"
device = "cpu"
supervisor_grace_s = 20
[[stage]]
name = "camera"
run = "port"
output = {{ {planes} }}
type = "carousel.image.{format}"
ends = true
[[stage]]
name = "out"
run = "port"
inputs = ["{read}"]
"""
TINT = """[[stage]]
name = "tint"
run = "carousel-sharpen"
inputs = ["camera"]
"""


def pipeline_of(width, height):
    """Pictures in RGBA that pass a stage."""
    return PORTS.format(planes=f'color = "u8[{height},{width},4]"', format="rgba8", read="tint") + TINT


def require_tools(build):
    if shutil.which("gst-launch-1.0") is None:
        skip("gst-launch-1.0 is missing (apt-get install gstreamer1.0-tools gstreamer1.0-plugins-base)")
    if not os.path.exists(os.path.join(build, "gstreamer-1.0", "libgstcarousel.so")):
        skip("this build has no GStreamer plugin")


class Rig:
    """The run; ended with the test."""

    def __init__(self, test, build, size=(320, 240), text=""):
        self.test, self.build, self.size = test, os.path.abspath(build), size
        self.folder = tempfile.mkdtemp(prefix="carousel-gst-")
        test.addCleanup(shutil.rmtree, self.folder, True)
        # The registry stays: to scan all plugins of the machine takes seconds.
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "GST_PLUGIN_PATH": os.path.join(self.build, "gstreamer-1.0"),
                            "GST_REGISTRY": os.path.join(self.build, "gst-registry.bin")}
        self.file = self.path("gst.toml")
        with open(self.file, "w", encoding="utf-8") as out:
            out.write(text or pipeline_of(*size))
        self.report_path = self.path("report.json")
        self.log_path = self.path("run.log")
        self.run = None
        self.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        """Starts the run, or continues it after the death of its supervisor."""
        with open(self.log_path, "ab") as log:
            self.run = subprocess.Popen([os.path.join(self.build, "carousel"), "run", self.file, "--report", self.report_path, "--no-color"],
                                        env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.test.addCleanup(end_process, self.run)

    def log(self):
        with open(self.log_path, encoding="utf-8") as f:
            return f.read()

    def launch(self, name, line):
        """gst-launch-1.0 as a process; its output is in the file `name`.log."""
        with open(self.path(name + ".log"), "wb") as log:
            process = subprocess.Popen(["gst-launch-1.0", "-q", *line.split()], env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        self.test.addCleanup(end_process, process)
        return process

    def text(self, name):
        with open(self.path(name + ".log"), encoding="utf-8") as f:
            return f.read()

    def frames_in(self, name):
        """The hashes of the whole frames in a file."""
        bytes_ = self.size[0] * self.size[1] * 4
        found = []
        try:
            with open(self.path(name), "rb") as f:
                while len(frame := f.read(bytes_)) == bytes_:
                    found.append(hashlib.blake2b(frame, digest_size=8).digest())
        except FileNotFoundError:
            pass
        return found

    def size_of(self, name):
        try:
            return os.path.getsize(self.path(name))
        except FileNotFoundError:
            return 0

    def feed(self, name, frames=-1, more=""):
        width, height = self.size
        return self.launch(name, f"videotestsrc pattern=ball num-buffers={frames} ! video/x-raw,format=RGBA,width={width},height={height},"
                                 f"framerate=30/1 ! carouselsink pipeline=gst port=camera {more}")

    def read(self, name, more=""):
        return self.launch(name, f"carouselsrc pipeline=gst ring=tint ! {more} filesink buffer-mode=unbuffered location={self.path(name)}")

    def end(self):
        """Waits for the end of the run: nothing lost, repeated or torn. Returns the report."""
        self.test.assertEqual(self.run.wait(60), 0, self.log())
        with open(self.report_path, encoding="utf-8") as f:
            report = json.load(f)
        self.test.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0], self.log())
        return report


def reference(test, build, size, frames):
    """The hashes of an undisturbed run's frames, in order."""
    rig = Rig(test, build, size)
    reader = rig.read("whole")
    feeder = rig.feed("feed", frames)
    test.assertEqual((feeder.wait(60), reader.wait(60)), (0, 0), rig.text("feed") + rig.text("whole") + rig.log())
    test.assertEqual(rig.end()["frames"], frames)
    found = rig.frames_in("whole")
    test.assertEqual(len(found), frames)
    test.assertEqual(len(set(found)), frames, "the frames of the test pattern must differ")
    return found


def kill_each(test, build, size, kills, seed, whole, of_supervisor=0):
    """Kills programs and the stage at random. Each feeder's frames must be in the run once and in order, and each frame of the run in the
    readers' files in order; the frame that a killed reader had handed over, but not committed, may be there twice."""
    chance = random.Random(seed)
    rig = Rig(test, build, size)
    number_of = {h: k for k, h in enumerate(whole)}
    feeders, readers = [], []

    def feed():
        feeders.append(rig.feed(f"feed{len(feeders)}", len(whole), "end-stream=false"))

    def read():
        readers.append(rig.read(f"read{len(readers)}"))

    def has_more(file, than):
        return rig.size_of(file) > than or feeders[-1].poll() is not None

    feed()
    read()
    victims = [("feed", "read", "stage")[k % 3] for k in range(kills)] + ["supervisor"] * of_supervisor
    chance.shuffle(victims)
    killed = 0   # feeders that had not written all of their frames
    for what in victims:
        file = f"read{len(readers) - 1}"
        wait_for("a frame in " + file, lambda f=file, then=rig.size_of(file): has_more(f, then))
        time.sleep(chance.random() * 0.05)
        if what == "feed" or feeders[-1].poll() is not None:
            feeders[-1].kill()
            code = feeders[-1].wait()
            killed += code != 0
            test.assertIn(code, (0, -signal.SIGKILL), rig.text(f"feed{len(feeders) - 1}") + rig.log())
            feed()
        if what == "read":
            readers[-1].kill()
            readers[-1].wait()
            read()
        elif what == "stage":
            subprocess.run([os.path.join(rig.build, "carousel"), "kill", "tint", "-p", "gst"], env=rig.environment, check=False, timeout=30,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        elif what == "supervisor":
            rig.run.kill()
            rig.run.wait()
            rig.start()
    test.assertEqual(feeders[-1].wait(60), 0, rig.text(f"feed{len(feeders) - 1}") + rig.log())
    last = rig.feed("last", 1)   # its end of stream ends the run
    test.assertEqual((last.wait(60), readers[-1].wait(60)), (0, 0), rig.text("last") + rig.text(f"read{len(readers) - 1}") + rig.log())
    frames = rig.end()["frames"]
    seen, repeated, uncertain = [], 0, 0
    for k in range(len(readers)):
        numbers = [number_of[h] for h in rig.frames_in(f"read{k}")]   # a torn frame raises KeyError
        if seen and numbers and numbers[0] == seen[-1]:
            if numbers[0] == 0:   # the same frame again, or the first one of another feeder
                uncertain += 1
            else:
                numbers, repeated = numbers[1:], repeated + 1
        seen += numbers
    for k, n in enumerate(seen[1:], 1):
        test.assertTrue(n in (0, seen[k - 1] + 1), f"frame {k} has picture {n} after picture {seen[k - 1]}")
    test.assertTrue(frames <= len(seen) <= frames + uncertain, f"{len(seen)} frames in the files, {frames} in the run")
    print(f"{kills} kills of feeders, readers and the stage, {of_supervisor} of the supervisor, seed {seed}: {frames} frames of "
          f"{size[0]} x {size[1]}, {killed} of {len(feeders)} feeders killed at work, {len(readers)} readers, {repeated} frames handed over twice")
