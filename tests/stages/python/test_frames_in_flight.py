"""What a stage's class passes from process() to finish(), and planes that it reads by a wrong name. Usage: test_frames_in_flight.py BUILD ROOT"""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import interpreter

BUILD, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
TALLY = os.path.join(ROOT, "stages", "examples", "tally")
PICTURES = [{"color": bytes([n])} for n in range(4)]


def own(source):
    """The stage class that a text defines."""
    names = {"carousel": carousel}
    exec(textwrap.dedent(source), names)
    return next(s for s in names.values() if isinstance(s, carousel.Stage))


class FramesInFlight(unittest.TestCase):
    def test_an_attribute_of_another_frame_is_found_by_its_name(self):
        mean = own("""
            @carousel.stage
            class mean:
                def process(self, frame, color):
                    self.value = color[0]
                def finish(self, frame):
                    frame.set_hash(self.value)
            """)
        self.assertEqual([f.hash for f in carousel.testing.run(mean, PICTURES)], [0, 1, 2, 3])
        with self.assertRaisesRegex(AssertionError, r"finish\(\) of frame 0 reads self.value, which process\(\) of frame 1 has set"):
            carousel.testing.check_frames_in_flight(mean, PICTURES)

    def test_an_object_that_process_changes_in_place_is_found_by_the_hashes(self):
        mean = own("""
            @carousel.stage
            class mean:
                def prepare(self, env):
                    self.value = [0]
                def process(self, frame, color):
                    self.value[0] = color[0]
                def finish(self, frame):
                    frame.set_hash(self.value[0])
            """)
        with self.assertRaisesRegex(AssertionError, "hash of frame 0 is 0 with one frame in flight and 1 with 2"):
            carousel.testing.check_frames_in_flight(mean, PICTURES)

    def test_frame_local_and_counters_pass(self):
        mean = own("""
            @carousel.stage
            class mean:
                def __init__(self, *, more: int = 0):
                    self.more, self.seen, self.done = more, 0, 0
                def process(self, frame, color):
                    self.seen += 1
                    frame.local.value = color[0] + self.more
                def finish(self, frame):
                    self.done += 1
                    frame.set_hash(frame.local.value)
            """)
        self.assertEqual(carousel.testing.check_frames_in_flight(mean, PICTURES, in_flight=3, more=5), [5, 6, 7, 8])
        with self.assertRaisesRegex(ValueError, "expected 2 or more"):
            carousel.testing.check_frames_in_flight(mean, PICTURES[:1])

    def test_the_test_that_carousel_new_writes_passes(self):
        environment = {**os.environ, "PYTHONPATH": os.path.join(BUILD, "python")}
        done = subprocess.run([sys.executable, "-B", "test_tally.py"], cwd=TALLY, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


class PlaneNames(unittest.TestCase):
    def carousel(self, command, decorator, *options):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "sink.py"), "w", encoding="utf-8") as out:
                out.write(f"import carousel\n\n{decorator}\nclass sink:\n    def process(self, frame):\n        frame['colour']\n")
            with open(os.path.join(folder, "names.toml"), "w", encoding="utf-8") as out:
                out.write(f"[pipeline]\nname = \"names-{os.getpid()}\"\nsize = [64, 36]\ndevice = \"cpu\"\n[[stage]]\nname = \"source\"\n"
                          f"run = \"{BUILD}/carousel-test-copy\"\n[[stage]]\nname = \"sink\"\nrun = \"sink.py\"\ninputs = [\"source\"]\n")
            return subprocess.run([os.path.join(BUILD, "carousel"), command, "names.toml", *options], cwd=folder, capture_output=True, text=True,
                                  timeout=60)

    def test_validate_refuses_a_declared_plane_that_no_input_has(self):
        done = self.carousel("validate", "@carousel.stage(reads=['colour'])")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("stage sink reads the plane \"colour\", which its input source does not have", done.stderr)
        self.assertIn("did you mean \"color\"?", done.stderr)
        self.assertEqual(self.carousel("validate", "@carousel.stage(reads=['color'])").returncode, 0)

    def test_the_errors_that_each_process_repeats_are_printed_once(self):
        done = self.carousel("run", "@carousel.stage", "--frames", "20")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no plane \"colour\"; there are color; did you mean \"color\"?", done.stderr)
        self.assertIn("4 restarts", done.stderr)
        printed = [line for line in done.stderr.splitlines() if line.startswith("sink ")]
        self.assertEqual(sum("KeyError" in line and "process of" not in line for line in printed), 1, done.stderr)   # the traceback's last line
        for frame in (0, 1):   # frame 0 is abandoned after three attempts
            self.assertEqual(sum(f"error: process of frame {frame}: " in line for line in printed), 1, done.stderr)
        self.assertRegex(done.stderr, r"sink +\| repeats 6 lines of pid [0-9]+")


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    import carousel.testing
    unittest.main(argv=sys.argv[:1], verbosity=2)
