"""carousel-video in real runs: kills, packets that end the decoder, damage, refusals.
Usage: test_video.py FOLDER_OF_PROGRAMS CASE..."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import interpreter  # noqa: E402
import video_rig as rig  # noqa: E402
from processes import wait_for  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[1])
SHIM = os.path.join(PROGRAMS, "libcarousel-test-deadly-packet.so")


def times_of(path):
    """(presentation time, is a key frame) of each packet, in the order of decoding."""
    return [(pts, key) for pts, _, key in rig.packets(path)]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carousel-video-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Kills(Case):
    def test_a_killed_decoder_has_the_frames_of_an_undisturbed_run(self):
        path = rig.make(self.folder, "h264", 240)
        expected = rig.undisturbed(PROGRAMS, path)
        self.assertEqual(expected["frames"], 240)
        with rig.Run(PROGRAMS, path, options=["--fps", "150"], environment={"CAROUSEL_LOG": "info"}) as run:
            for frame in (75, 130, 185):
                run.kill_decoder_at(frame)
            self.assertEqual(run.wait(), 0, run.log())
            result, log = run.result(), run.log()
        self.assertEqual(result, expected, log)
        self.assertEqual(log.count(") died: "), 3, log)
        self.assertIn("from the key frame", log)   # a successor does not decode from the beginning

    def test_a_video_that_is_replaced_during_the_run_is_refused(self):
        path = rig.make(self.folder, "h264", 150)
        other_folder = os.path.join(self.folder, "other")
        os.mkdir(other_folder)
        other = rig.make(other_folder, "h264", 150, source="testsrc")
        with rig.Run(PROGRAMS, path, options=["--fps", "150"]) as run:
            wait_for("frame 20", lambda: run.decoded_frames() > 20)
            os.utime(path)   # another time, the same content
            run.kill_decoder_at(30)
            wait_for("frame 50", lambda: run.decoded_frames() > 50)   # its successor has continued
            os.replace(other, path)
            run.kill_decoder_at(50)
            self.assertNotEqual(run.wait(), 0, run.log())
            log = run.log()
        self.assertIn("h264.mp4 has changed since frame 0 of this run was read; restore it or start a new run", log)


class Stalls(Case):
    def test_a_disk_that_does_not_respond_while_a_successor_catches_up_is_waited_for(self):
        path = rig.make(self.folder, "h264", 60)
        stall = os.path.join(self.folder, "stall")
        tenth = sorted(pts for pts, _ in times_of(path))[10]
        environment = {"LD_PRELOAD": SHIM, "DEADLY_PACKETS": f"stall {tenth}", "STALL_IF": stall, "CAROUSEL_LOG": "info"}
        with rig.Run(PROGRAMS, path, options=["--fps", "90"], environment=environment, run_keys="stall_timeout_ms = 400") as run:
            wait_for("frame 30", lambda: run.decoded_frames() > 30)
            open(stall, "w", encoding="ascii").close()
            run.kill_decoder_at(30)
            self.assertEqual(run.wait(), 0, run.log())
            result, log = run.result(), run.log()
        self.assertEqual([result[k] for k in ("frames", "lost", "repeated", "torn")], [60, 0, 0, 0], log)
        self.assertEqual(log.count(") died: "), 1, log)
        self.assertNotIn("no stage has a reason to wait", log)


class Deadly(Case):
    def test_a_packet_that_ends_the_decoder_costs_the_frames_up_to_the_next_key_frame(self):
        path = rig.make(self.folder, "h264", 150)
        packets = times_of(path)
        order = sorted(pts for pts, _ in packets)
        keys = sorted(order.index(pts) for pts, key in packets if key)
        self.assertGreater(len(keys), 4)
        # the first packet after the second key frame aborts the process, the first one after the fourth never returns
        killing, hanging = (packets[[p for p, _ in packets].index(order[key]) + 4][0] for key in (keys[1], keys[3]))
        environment = {"LD_PRELOAD": SHIM, "DEADLY_PACKETS": f"kill {killing} hang {hanging}"}
        with rig.Run(PROGRAMS, path, "frame_timeout_ms = 400", environment=environment) as run:
            self.assertEqual(run.wait(90), 4, run.log())   # frames were abandoned
            result, log = run.result(), run.log()
        self.assertEqual([result[k] for k in ("frames", "lost", "repeated", "torn")], [150, 0, 0, 0], log)
        gone = sorted({int(line.split("frame ")[1].split()[0]) for line in log.splitlines() if "is missing in" in line})
        # the two frames that were given up after their attempts are logged by the runner
        allowed = set(range(keys[1], keys[2])) | set(range(keys[3], keys[4]))
        self.assertLessEqual(set(gone), allowed, log)
        self.assertGreaterEqual(len(gone), 2, log)
        self.assertEqual(log.count("which was given up"), 2, log)


class Damage(unittest.TestCase):
    def test_damaged_videos_end_no_run_and_hang_none(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "damage.py"), PROGRAMS, "--seeds", "10"],
                              capture_output=True, text=True, timeout=150, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Refusals(Case):
    def refusal(self, url, keys=""):
        with rig.Run(PROGRAMS, url, keys) as run:
            self.assertEqual(run.wait(20), 2, run.log())
            line, = [line for line in run.log().splitlines() if line.startswith("error: ")]
            return line

    def test_what_cannot_be_read_is_refused_in_one_sentence(self):
        self.assertIn("cannot be opened: No such file or directory", self.refusal("nothing.mp4"))
        self.assertIn("the device cannot be read: No such file or directory", self.refusal("/dev/video77"))
        self.assertIn("make a FIFO", self.refusal("pipe:0"))
        text = os.path.join(self.folder, "text.mp4")
        with open(text, "w", encoding="ascii") as f:
            f.write("not a video\n" * 100)
        self.assertIn("Invalid data", self.refusal(text))
        self.assertIn("has an option colour", self.refusal("lavfi:testsrc2", 'options = { colour = "red" }'))
        self.assertIn("can't be NV12", self.refusal("lavfi:testsrc=size=161x90", 'pixel_format = "nv12"'))


class Shipped(Case):
    def test_the_shipped_pipeline_runs(self):
        file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "pipelines", "video.toml")
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        done = subprocess.run([os.path.join(PROGRAMS, "carousel"), "run", file, "--device", "cpu", "--size", "96x64", "--frames", "12", "--out", "", "--no-color"],
                              env=environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("12 frames", done.stdout + done.stderr)
        self.assertIn("lost 0, repeated 0, torn 0", done.stdout + done.stderr)


class Live(Case):
    def test_frames_that_a_slow_pipeline_does_not_take_are_dropped_and_counted(self):
        fifo = os.path.join(self.folder, "live.fifo")
        os.mkfifo(fifo)
        slow = 'run = "carousel-display"\nout = "none"\ndelay_ms = 100'
        with rig.Run(PROGRAMS, fifo, sink=slow) as run:
            sender = subprocess.Popen(["ffmpeg", "-loglevel", "error", "-y", "-re", "-f", "lavfi", "-i", f"testsrc2=size={rig.WIDTH}x{rig.HEIGHT}:rate=50", "-frames:v",
                                       "100", "-c:v", "mjpeg", "-f", "matroska", fifo], stdin=subprocess.DEVNULL)
            self.addCleanup(sender.wait)
            self.assertEqual(run.wait(60), 0, run.log())   # the end of the pipe is the end of the stream
            frames, log = run.result()["frames"], run.log()
        dropped = max(int(line.split(": ")[-2].split()[0]) for line in log.splitlines() if "frames dropped at the source" in line)
        self.assertGreater(dropped, 20, log)
        self.assertEqual(frames + dropped, 100, log)


if __name__ == "__main__":
    rig.require_tools(PROGRAMS)
    if "Shipped" in sys.argv:
        interpreter.use(PROGRAMS)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
