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


class State(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def pipeline(self, stage):
        with open(os.path.join(self.folder.name, "stage.py"), "w", encoding="utf-8") as out:
            out.write(stage)
        number = f'run = "{BUILD}/carousel-test-number"'
        file = os.path.join(self.folder.name, "state.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "state-{os.getpid()}"\nsize = [64, 36]\ndevice = "cpu"\nfps = 100\n'
                      f'[[stage]]\nname = "numbers"\n{number}\n'
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

    def refused(self, stage):
        done = subprocess.run([os.path.join(BUILD, "carousel"), "validate", self.pipeline(stage)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout)
        return " ".join(done.stderr.split())

    def test_kills_change_no_state(self):
        self.assertEqual(self.hash_of(0), self.hash_of(2))

    def test_a_state_that_cannot_be_right_is_refused(self):
        self.assertIn("no argument writes the plane 'hash' of the state; add out_hash or frame",
                      self.refused(STAGE.replace("frame, value, out, hash, out_hash", "value, out, hash")))
        self.assertIn("expected a dict of planes", self.refused(STAGE.replace('state={"hash": "u64[4]"}', "state={}")))
        self.assertIn("expected a type and its extents", self.refused(STAGE.replace('"u64[4]"', '"u64"')))
        self.assertIn("a state needs an output", self.refused("import carousel\n@carousel.stage(state={\"hash\": \"u64[4]\"})\n"
                                                              "def sink(value, hash, out_hash):\n    pass\n"))


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
