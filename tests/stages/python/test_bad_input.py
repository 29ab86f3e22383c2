"""Errors that a Python stage may make: each is one sentence in the log, costs only its own frame, and the run continues.

Usage: test_bad_input.py BUILD
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import interpreter

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))

PIPELINE = """[pipeline]
name = "bad-{pid}"
size = [64, 36]
device = "cpu"
frame_timeout_ms = 700
allow_dead_letters = true
[[stage]]
name = "source"
run = "{build}/carousel-test-copy"
[[stage]]
name = "bad"
run = "{file}"
inputs = ["source"]
max_attempts = 1
first_frame_timeout_ms = 4000
{more}
[[stage]]
name = "sink"
run = "{build}/carousel-test-copy"
inputs = ["{reads}"]
sink = true
"""

MESSAGES = {
    "raises": "line 44: ValueError: as told",
    "returns": "process() returned a value of type ndarray: a stage must write to its output and return nothing",
    "keeps": "an array of plane \"color\" of frame 30 outlives process()",
    "writes in place": "ValueError: output array is read-only",
    "writes past the array": "a write into its input ring source, frame 50, plane color, offset 0",
    "forks": "RuntimeError: a stage must not fork",
    "exits": "sys.exit(3) was called: a stage must not end its process",
    "hangs": "process() of a frame takes longer than frame_timeout_ms = 700",
    "holds the GIL": "process() of a frame takes longer than frame_timeout_ms = 700",
    "another type": "plane \"color\" has elements of u8, but the array has elements of f32: convert the array first",
    "another shape": "plane \"color\" is [36, 64, 4], the array [3, 64, 4]",
    "another stride": "has strides of (1, 36, 2304) elements and is not dense",
    "no array": "expected an array (a NumPy array, a tensor: a buffer or __dlpack__), got str",
    "in an input": "plane \"color\" belongs to an input, so it is read-only",
    "another device": "plane \"color\" is on cpu, the array on cuda:0",
    "no text": "NoText: its text is not available: __str__ raises RuntimeError",
    "broken text": "ValueError: half \\udc80 a letter",
    "long text": "characters) ... xxx",
    "negative extent": "TypeError: set_used(): expected whole numbers, 0 or more, got (-1,)",
    "broken value": "TypeError: metadata \"k\": expected a text in UTF-8, got '\\udc80'",
    "huge value": "TypeError: metadata \"k\": expected a whole number from -2**63 to 2**64 - 1, got -9223372036854775809",
    "numbered key": "TypeError: a key of metadata: expected a text in UTF-8, got 5",
    "negative time": "TypeError: capture_ns: expected a whole number from 0 to 2**64 - 1, got -1",
    "uses an old plane": "plane \"color\" of frame 150 was used after its frame ended",
}


def frames_of_failures():
    """The frame at which each error is made. One is only seen in the next frame."""
    text = open(os.path.join(HERE, "bad.py"), encoding="utf-8").read()
    scope = {}
    exec(text[text.index("WRONG ="):text.index("kept =")], scope)
    return {how: frame + (1 if how == "uses an old plane" else 0) for frame, how in scope["WRONG"].items()}


class BadInput(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def pipeline(self, file, more="", reads="bad"):
        path = os.path.join(self.folder.name, "bad.toml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(PIPELINE.format(pid=os.getpid(), build=BUILD, file=file, more=more, reads=reads))
        return path

    def carousel(self, *words):
        return subprocess.run([os.path.join(BUILD, "carousel"), *words], capture_output=True, text=True, timeout=100)

    def refused(self, text, more="", reads="bad"):
        """The output of `carousel validate` for a stage with that text."""
        file = os.path.join(self.folder.name, "stage.py")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        done = self.carousel("validate", self.pipeline(file, more, reads))
        self.assertEqual(done.returncode, 2, done.stdout)
        return done.stderr

    def test_each_wrong_costs_its_frame_and_the_run_lives(self):
        report = os.path.join(self.folder.name, "report.json")
        done = self.carousel("run", self.pipeline(os.path.join(HERE, "bad.py")), "--frames", "250", "--no-color", "--report", report)
        log = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, log[-3000:])
        got = json.load(open(report, encoding="utf-8"))
        self.assertEqual([got[k] for k in ("frames", "lost", "repeated", "torn")], [250, 0, 0, 0], log[-3000:])
        self.assertEqual(sorted(dead_letter["ring_sequence"] for dead_letter in got["dead_letters"]), sorted(frames_of_failures().values()), log[-3000:])
        for how, words in MESSAGES.items():
            self.assertIn(words, log, how)
        self.assertIn("Fatal Python error: Segmentation fault", log)
        self.assertRegex(log, r"bad\.py\", line 52 in ")   # the Python frames of the death at "writes past the array"
        self.assertLess(len(log), 100000)
        self.assertNotIn("incompatible function arguments", log)

    def test_a_dead_letter_has_the_traceback_and_can_be_replayed(self):
        run = subprocess.Popen([os.path.join(BUILD, "carousel"), "run", self.pipeline(os.path.join(HERE, "bad.py")), "--frames", "14",
                                "--no-color"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        log = run.communicate(timeout=60)[0]
        self.assertEqual(run.returncode, 0, log)
        listed = self.carousel("replay", "-p", f"bad-{os.getpid()}").stdout
        folder = listed.splitlines()[1].split()[-1]
        self.assertEqual(listed.splitlines()[1].split()[3], "bad.py", listed)
        with open(os.path.join(folder, "traceback.txt"), encoding="utf-8") as text:
            self.assertIn("raise ValueError(\"as told\")", text.read())
        again = self.carousel("replay", "--dead-letter", "10", "-p", f"bad-{os.getpid()}")
        self.assertEqual(again.returncode, 73, again.stderr)
        self.assertIn("ValueError: as told", again.stderr)

    def test_a_frame_of_more_than_1_gib_is_not_saved_and_continues(self):
        # unwritten parts take no memory
        for name, text in (("makes", "@carousel.stage(output={'big': 'u8[1025, 1024, 1024]'})\ndef makes(frame, out): pass\n"),
                           ("dies", "@carousel.stage\ndef dies(frame, big):\n    if frame.frame_number == 2: raise ValueError('as told')\n")):
            with open(os.path.join(self.folder.name, name + ".py"), "w", encoding="utf-8") as out:
                out.write("import carousel\n" + text)
        path = os.path.join(self.folder.name, "big.toml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"[pipeline]\nname = \"big-{os.getpid()}\"\ndevice = \"cpu\"\n[[stage]]\nname = \"makes\"\nrun = \"makes.py\"\n"
                      "[[stage]]\nname = \"dies\"\nrun = \"dies.py\"\ninputs = [\"makes\"]\nmax_attempts = 1\n"
                      # With two frames in flight, the first death is not charged to frame 2 if frame 1 is not yet committed.
                      "in_flight = 1\n")
        report = os.path.join(self.folder.name, "report.json")
        done = self.carousel("run", path, "--frames", "6", "--no-color", "--report", report)
        log = done.stdout + done.stderr
        self.assertEqual(done.returncode, 4, log)
        self.assertIn("frame 2 is given up and not saved: its inputs and assets are 1025 MiB, more than 1024", log)
        with open(report, encoding="utf-8") as text:
            got = json.load(text)
        self.assertEqual([got[k] for k in ("frames", "lost", "repeated", "torn", "restarts")], [6, 0, 0, 0, 1], log)
        self.assertIn("no frame that was given up has been saved", self.carousel("replay", "-p", f"big-{os.getpid()}").stdout)

    def test_a_broken_file_is_refused_by_restart_and_a_kill_waits_for_its_repair(self):
        good = ("import carousel, os\nassert os.environ['CAROUSEL_TEST_OF_THE_RUN']\n@carousel.stage(output=carousel.like(0))\n"
                "def f(color, out): out.copy_from(color)\n")
        file = os.path.join(self.folder.name, "stage.py")

        def write(text):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)

        write(good)
        os.environ["CAROUSEL_TEST_OF_THE_RUN"] = "1"
        self.addCleanup(os.environ.pop, "CAROUSEL_TEST_OF_THE_RUN", None)
        with carousel.Pipeline(self.pipeline(file, "standby = false")).start(fps=100) as run:
            def stage():
                return next(s for s in run.ps()["stages"] if s["name"] == "bad")
            pid = stage()["pid"]
            del os.environ["CAROUSEL_TEST_OF_THE_RUN"]   # a restart has another environment than the run
            for text, expected in {
                "import frobnicate\n" + good: "stage.py, line 1: ModuleNotFoundError",
                good.replace("like(0)", "image(8, 8)"): "produces frames of another format",
                good.replace("out)", "out, *, often: int)"): "often is missing",
                good.replace("color", "colour"): "the argument colour is not a plane here",
            }.items():
                write(text)
                with self.assertRaisesRegex(carousel.Error, expected):
                    run.restart("bad")
                self.assertEqual(stage()["pid"], pid, expected)
            run.kill("bad")   # the next process meets the faulty file, and the one after it the corrected file
            until = time.monotonic() + 30
            while "died before it delivered a frame (exit code 2)" not in run.log_text(100):
                self.assertLess(time.monotonic(), until, run.log_text(40))
                time.sleep(0.02)
            write(good)
            while stage()["state"] != "running":
                self.assertLess(time.monotonic(), until, run.log_text(40))
                time.sleep(0.05)
            write(good + "# another text\n")
            run.restart("bad")
            self.assertNotEqual(stage()["pid"], pid)
            self.assertEqual(run.end(), 0, run.log_text(40))
            self.assertEqual([run.report()[k] for k in ("lost", "repeated", "torn", "dead_letters")], [0, 0, 0, []])

    def test_a_file_that_cannot_be_a_stage_is_refused_before_anything_starts(self):
        stage = "import carousel\n@carousel.stage(output=carousel.like(0))\n"
        for text, expected in {
            "import frobnicate\n": f"stage.py, line 1: ModuleNotFoundError: No module named 'frobnicate' for {sys.executable}; the stage's key python, or CAROUSEL_PYTHON, names another",
            "def f(:\n": "stage.py, line 1: SyntaxError",
            "import sys\nsys.exit(3)\n": "stage.py, line 2: sys.exit(3) was called",
            "x = 1\n": "stage.py defines no stage; expected one function or class with @carousel.stage",
            stage + "def f(color, out): pass\n" + stage.splitlines()[1] + "\ndef g(color, out): pass\n": "stage.py defines 2 stages: f, g",
            stage + "def f(colour, out): pass\n": "the argument colour is not a plane here; there are frame, color, out",
            stage + "def f(color, out, *, strength): pass\n": "the setting strength needs a type",
            stage + "def f(color, out, *, strength: float): pass\n": "strength is missing; expected a number",
            stage.replace("like(0)", "like(1)") + "def f(color, out): pass\n": "the stage has 1 inputs",
            stage + "def f(color): pass\n": "f(color): no argument writes the output; add out or out_color or frame",
            stage + "def f(color, out, out_color): pass\n": "f(color, out, out_color): out and out_color are the same plane; name it once",
            stage.replace("carousel.like(0)", "{'depth': 'f32[36, w]'}") + "def f(color, out): pass\n": "the extent 'w' is not a number",
        }.items():
            self.assertIn(expected, self.refused(text), text)

    def test_outputs_that_cannot_be_are_one_sentence_each(self):
        def stage(outputs, arguments, more=""):
            return f"import carousel\n@carousel.stage(outputs={outputs}{more})\ndef f({arguments}): pass\n"
        two = "{'color': carousel.like(0), 'depth': {'z': 'f32[36, 64]'}}"
        alike = "{'left': carousel.like(0), 'right': carousel.like(0)}"
        for text, expected in {
            stage(two, "color, out_color, out_dept"): "the argument out_dept is not a plane here; there are frame, color, out_color, "
                                                      "out_color_color, out_depth, out_depth_z, out_z",
            stage(two, "color, out"): "the argument out is not a plane here",
            stage(two, "color, out_color"): "f(color, out_color): no argument writes the output 'depth'; add out_depth or out_depth_z or "
                                            "out_z or frame",
            stage(two, "color, out_color, out_depth, out_z"): "out_depth and out_z are the same plane; name it once",
            stage(alike, "color, out_left, out_color"): "the argument out_color is a plane of 2 outputs; there are frame, color, out_left",
            stage("{'a_b': carousel.like(0), 'a-b': carousel.like(0)}", "out_a_b"): "the argument out_a_b is a plane of 2 outputs",
            stage("{}", "color"): "outputs={}; expected a name for each",
            stage("carousel.like(0)", "color, out"): "outputs=carousel.like(0); expected a name for each",
            stage("{'color': None}", "frame"): "outputs['color']=None; expected carousel.like(0)",
            stage("{'color': carousel.like(1)}", "frame"): "outputs['color']=carousel.like(1), but the stage has 1 inputs",
            stage("{'color': {'z': 'f32[h]'}}", "frame"): "output plane 'z': the extent 'h' is not a number",
            stage("lambda config: [1]", "frame"): "outputs=[1]; expected a name for each",
            stage("{'a b': carousel.like(0), 'c': carousel.like(0)}", "frame"): "output 1 of 2 is named \"a b\"; expected a name",
            stage("{k: carousel.like(0) for k in 'abcde'}", "frame"): "5 outputs are named, but at most 4",
            stage(two, "frame", ", output=carousel.like(0)"): "output= and outputs= exclude each other",
            stage(two, "frame"): "produces \"depth\" (f.depth), which no stage reads",
        }.items():
            message = self.refused(text)
            self.assertIn(expected, message, text)
            self.assertNotIn("Traceback", message)
        self.assertRegex(self.refused(stage(two, "frame"), reads="bad.dept"), "bad.dept.*color.*depth")

    def test_settings_have_types_and_ranges(self):
        text = ("import carousel\nfrom typing import Annotated, Literal\n@carousel.stage(output=carousel.like(0))\n"
                "def f(color, out, *, strength: Annotated[float, carousel.between(0, 4)] = 1, how: Literal['soft', 'hard'] = 'soft',"
                " often: int = 1, loud: bool = False): pass\n")
        for more, expected in {
            "strength = 5.0": "strength = 5.0: expected a number from 0 to 4",
            "strenght = 1.0": "unknown key \"strenght\"; did you mean \"strength\"",
            "how = \"sof\"": "how = \"sof\": expected one of soft, hard; did you mean \"soft\"",
            "often = 1.5": "often = 1.5: expected a whole number",
            "loud = 1": "loud = 1: expected true or false",
        }.items():
            message = self.refused(text, more)
            self.assertIn(expected, message)
            self.assertIn("bad.toml:16:", message)   # the line of the key


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
