"""Parameters as a stage in Python reads them of a side input: those that the input's own frame was made with.

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
        side = frame.latest("fragment")
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
            raise ValueError(f"{self.seen} beside {side.sequence}")
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
latest = ["fragment"]
max_attempts = 1
"""


class Parameters(unittest.TestCase):
    def test_a_side_input_has_the_parameters_that_its_own_frame_was_made_with(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = os.path.join(folder.name, "parameters.toml")
        with open(os.path.join(folder.name, "reads.py"), "w", encoding="utf-8") as out:
            out.write(READS)
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "parameters-{os.getpid()}"\nsize = [64, 36]\ndevice = "cpu"\nfps = 50\nallow_dead_letters = true\n'
                      f"[parameters]\nexposure = 1.75\n{STAGES}")
        with carousel.Pipeline(file).start() as run:
            with run.open() as view, view.latest("fragment") as newest:
                self.assertIsNotNone(newest.next(20), run.log_text(40))
            time.sleep(1)   # `reads` has seen some, too
            run.set(exposure=0.5)
            until = time.monotonic() + 30
            while " is given up" not in run.log_text(200) and time.monotonic() < until:
                time.sleep(0.05)
            self.assertEqual(run.stop(), 0, run.log_text(40))
        self.assertTrue(re.search(r"ValueError: \[1.75, 0.5\] beside \d+", run.log_text(200)), run.log_text(200))


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
