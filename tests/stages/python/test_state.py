"""A stage in Python with state: killed again and again, it continues from the state of the last committed frame.

Usage: test_state.py BUILD
"""
import os
import subprocess
import sys
import tempfile
import unittest

import interpreter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import wait_for  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])

# The hash of all numbers so far, four times.
STAGE = """import carousel, numpy
@carousel.stage(output={"value": "u64[1]", "type": "test.number"}, state={"hash": "u64[4]"})
def remembers(frame, value, out, hash, out_hash):
    before, after = numpy.asarray(hash), numpy.asarray(out_hash)
    assert frame.first_state == (frame.frame_number == 0)
    assert not before.flags.writeable and numpy.asarray(frame["hash"]) is not None
    numpy.multiply(before ^ numpy.asarray(value), numpy.uint64(0x9E3779B97F4A7C15), out=after)
    numpy.asarray(out)[0] = after[0] if (after == after[0]).all() else 1
"""

TOMBSTONE = 20

# A count of the frames. The state is large, so that the copy of a tombstone's state takes time.
COUNTS = f"""import carousel, numpy
@carousel.stage(output={{"value": "u64[1]", "type": "test.number"}}, state={{"count": "u64[500000]"}})
def counts(frame, value, out, count, out_count):
    before = numpy.asarray(count)
    frames = frame.frame_number - (frame.frame_number > {TOMBSTONE})
    assert before[-1] == frames and (before == frames).all(), (frame.frame_number, before[-1])
    numpy.add(before, numpy.uint64(1), out=numpy.asarray(out_count))
    numpy.asarray(out)[:] = numpy.asarray(value)
"""

# The output of a number stage with state, without the tombstone's frame.
COMPARES = f"""import carousel, numpy
def hash_of(frames):
    now = 0
    for n in (n for n in range(frames) if n != {TOMBSTONE}):
        now = (now ^ n * 1000) * 0x9E3779B97F4A7C15 % 2**64
        now = (now << 29 | now >> 35) % 2**64
    return now
@carousel.stage(output={{"value": "u64[1]", "type": "test.number"}})
def compares(frame, value, out):
    assert int(numpy.asarray(value)[0]) == hash_of(frame.frame_number + 1), frame.frame_number
    numpy.asarray(out)[:] = numpy.asarray(value)
"""


class State(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def pipeline(self, stage, source="", fps=100):
        with open(os.path.join(self.folder.name, "stage.py"), "w", encoding="utf-8") as out:
            out.write(stage)
        number = f'run = "{BUILD}/carousel-test-number"'
        file = os.path.join(self.folder.name, "state.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "state-{os.getpid()}"\nsize = [64, 36]\ndevice = "cpu"\nfps = {fps}\n'
                      f'[[stage]]\nname = "numbers"\n{number}\n{source}'
                      '[[stage]]\nname = "middle"\nrun = "stage.py"\ninputs = ["numbers"]\n'
                      f'[[stage]]\nname = "sink"\n{number}\ninputs = ["middle"]\nsink = true\n')
        return file

    def hash_of(self, kills):
        run = carousel.Pipeline(self.pipeline(STAGE)).start(frames=100)
        for _ in range(kills):
            pid = next(s["pid"] for s in run.ps()["stages"] if s["name"] == "middle")
            run.kill("middle")
            wait_for("its successor", lambda p=pid: any(s["name"] == "middle" and s["pid"] not in (p, 0, None) and s["state"] == "running"
                                                        for s in run.ps()["stages"]))
        self.assertEqual(run.wait(60), 0, run.log_text(40))
        report = run.report()
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [100, 0, 0, 0], run.log_text(40))
        self.assertGreaterEqual(report["restarts"], kills)
        return report["image_hash"]

    def runs_with_one_tombstone(self, stage, source, restarts=0):
        run = carousel.Pipeline(self.pipeline(stage, source, 2000)).start(frames=60)
        self.assertIn(run.wait(60), (0, 4), run.log_text(40))   # 4: a frame was abandoned in this run
        report = run.report()
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [60, 0, 0, 0], run.log_text(40))
        # A death with two frames in flight is blamed on neither: one more death follows.
        self.assertIn(report["restarts"] - restarts, (0, 1) if restarts else (0,), run.log_text(40))

    def refused(self, stage):
        done = subprocess.run([os.path.join(BUILD, "carousel"), "validate", self.pipeline(stage)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout)
        return " ".join(done.stderr.split())

    def test_kills_change_no_state(self):
        self.assertEqual(self.hash_of(0), self.hash_of(2))

    def test_a_tombstone_keeps_the_state(self):
        passed = f"tombstone_at = {TOMBSTONE}\n"
        self.runs_with_one_tombstone(COUNTS, passed)
        self.runs_with_one_tombstone(COMPARES, "state = true\n" + passed)
        self.runs_with_one_tombstone(COMPARES, f'state = true\ndie_at = {TOMBSTONE}\ndie_how = "abort"\nmax_attempts = 1\n', 1)

    def test_a_plane_of_the_state_hides_no_other(self):
        for name, of in (("value", "a plane of input numbers"), ("numbers_value", "a plane of input numbers"), ("frame", "the frame"),
                         ("out", "a plane of an output"), ("out_hash", "that of the state's plane 'hash'")):
            planes = '{"hash": "u64[4]", "%s": "u64[4]"}' % name
            self.assertIn(f"the argument {name} of the state's plane '{name}' is also {of}; rename the plane of the state",
                          self.refused(STAGE.replace('{"hash": "u64[4]"}', planes)))

    def test_a_state_that_cannot_be_right_is_refused(self):
        self.assertIn("no argument writes the plane 'hash' of the state; add out_hash or frame",
                      self.refused(STAGE.replace("frame, value, out, hash, out_hash", "value, out, hash")))
        self.assertIn("expected a dict of planes", self.refused(STAGE.replace('state={"hash": "u64[4]"}', "state={}")))
        self.assertIn("expected a type and its extents", self.refused(STAGE.replace('"u64[4]"', '"u64"')))
        self.assertIn('"sink" reads "middle", which has no output in addition to its state: write "middle.state" for that',
                      self.refused("import carousel\n@carousel.stage(state={\"hash\": \"u64[4]\"})\ndef sink(value, hash, out_hash):\n    pass\n"))


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
