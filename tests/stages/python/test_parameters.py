"""Parameters as Python reads them of a sampled input and of a port's frame: those that the frame itself was made with.

Usage: test_parameters.py BUILD
"""
import os
import re
import sys
import tempfile
import time
import unittest

import interpreter

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
READS = """import carousel
@carousel.stage
class reads:
    def __init__(self):
        self.seen, self.kept = [], None
    def process(self, frame, color):
        side = frame.sampled("fragment")
        if side is None:
            return
        exposure = side.parameters["exposure"]
        assert side.copy().parameters == side.parameters and side.parameters["shading"] == "lit", side.parameters
        if exposure not in self.seen:
            self.seen.append(exposure)
        if self.kept:   # of a frame that has ended
            try:
                self.kept.parameters
                raise AssertionError("not refused")
            except carousel.FrameEnded:
                pass
        self.kept = side
        if len(self.seen) == 2:
            raise ValueError(f"{self.seen} beside {side.frame_number}")
"""
STAGES = f"""
[[stage]]
name = "source"
run = "{BUILD}/carousel-test-copy"
[[stage]]
name = "geometry"
run = "{BUILD}/carousel-geometry"
triangles = 200
[[stage]]
name = "vertex"
run = "{BUILD}/carousel-vertex"
inputs = ["geometry"]
[[stage]]
name = "fragment"
run = "{BUILD}/carousel-fragment"
inputs = ["vertex"]
[[stage]]
name = "eater"
run = "{HERE}/eater.py"
inputs = ["fragment"]
pause_s = 0.01
[[stage]]
name = "reads"
run = "reads.py"
inputs = ["source"]
sampled = ["fragment"]
max_attempts = 1
"""
PORTS = """
[[stage]]
name = "camera"
run = "port"
output = {{ value = "u64[4]" }}
{0}
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
[[stage]]
name = "eater"
run = "{1}/eater.py"
inputs = ["fragment"]
"""


class Parameters(unittest.TestCase):
    def pipeline(self, name, keys, stages):
        """In a separate folder, which is removed after the test, on the CPU."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = os.path.join(folder.name, f"{name}.toml")
        with open(os.path.join(folder.name, "reads.py"), "w", encoding="utf-8") as out:
            out.write(READS)
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "{name}-{os.getpid()}"\nsize = [64, 36]\ndevice = "cpu"\n{keys}{stages}')
        return carousel.Pipeline(file)

    def test_a_sampled_input_has_the_parameters_of_its_own_frame(self):
        keys = "fps = 50\nallow_dead_letters = true\n[parameters]\nexposure = 1.75\n"
        with self.pipeline("parameters", keys, STAGES).start() as run:
            with run.open() as view, view.latest("fragment") as newest:
                self.assertIsNotNone(newest.next(20), run.log_text(40))
            time.sleep(1)   # `reads` has seen some, too
            run.set(exposure=0.5)
            until = time.monotonic() + 30
            while " is given up" not in run.log_text(200) and time.monotonic() < until:
                time.sleep(0.05)
            self.assertEqual(run.end(), 0, run.log_text(40))
        self.assertTrue(re.search(r"ValueError: \[1.75, 0.5\] beside \d+", run.log_text(200)), run.log_text(200))

    def test_the_frames_of_ports_have_the_parameters_that_they_were_made_with(self):
        drawing = STAGES[STAGES.index('[[stage]]\nname = "geometry"'):STAGES.index('[[stage]]\nname = "eater"')]
        keys = "fps = 30\n[parameters]\nexposure = 1.75\n"
        with self.pipeline("ported", keys, PORTS.format(drawing, HERE)).start(frames=150) as run:
            with (run.open() as view, view.writer("camera") as writer, view.reader("analysis") as reader,
                  view.latest("fragment") as newest):
                kept, seen, before, both = [], None, None, set()
                for frame in writer:
                    kept.append(frame.parameters["exposure"])
                    with self.assertRaises(TypeError):
                        frame.parameters()
                    numpy.asarray(frame["out_value"])[:] = 0
                    frame.commit()
                    with reader.next() as got:
                        self.assertEqual(got.parameters["exposure"], kept[got.frame_number])
                        copy = got.copy()
                    with self.assertRaises(carousel.FrameEnded):
                        got.parameters
                    self.assertEqual(copy.parameters["exposure"], kept[copy.frame_number])
                    seen = newest.next(20 if seen is None else 0.2) or seen
                    self.assertEqual((seen.parameters["shading"], seen.copy().parameters), ("lit", seen.parameters))
                    both.add(seen.parameters["exposure"])
                    if before is None:
                        before = seen
                        run.set(exposure=0.5)
                self.assertEqual(({*kept}, both, len(kept)), ({1.75, 0.5}, {1.75, 0.5}, 150))
            self.assertEqual(before.parameters["exposure"], 1.75)   # of a frame that is kept after the run
            self.assertEqual(run.wait(30), 0, run.log_text(40))

    def test_a_pipeline_has_started_where_all_but_its_ports_is_done(self):
        drawing = f'[[stage]]\nname = "fragment"\nrun = "{BUILD}/carousel-test-copy"\n'
        with self.pipeline("apart", "", PORTS.format(drawing, HERE)).start(frames=5, wait_s=20) as run, run.open() as view:
            with view.writer("camera") as writer, view.reader("analysis") as reader:
                for frame in writer:
                    frame.commit()
                    reader.next().commit()
            self.assertEqual(run.wait(30), 0, run.log_text(40))

    def test_a_frame_that_is_kept_keeps_no_run_that_was_closed(self):
        stages = (f'[[stage]]\nname = "source"\nrun = "{BUILD}/carousel-test-copy"\n'
                  f'[[stage]]\nname = "eater"\nrun = "{HERE}/eater.py"\ninputs = ["source"]\n')
        with self.pipeline("closed", "fps = 50\n", stages).start() as run:
            with run.open() as view, view.latest("source") as newest:
                kept = newest.next(20)
            with self.assertRaisesRegex(RuntimeError, "its run was closed before the parameters of any frame were read"):
                kept.parameters
            self.assertEqual(run.end(), 0, run.log_text(40))


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    import numpy
    unittest.main(argv=sys.argv[:1], verbosity=2)
