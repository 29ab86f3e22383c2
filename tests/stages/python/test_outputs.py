"""The outputs of a stage in Python, if they depend on its inputs and its settings: output= as a function of the Configuration.

Usage: test_outputs.py BUILD ROOT
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import interpreter

BUILD, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))

# Its source's picture is not the pipeline's: 48 x 20, each element of a frame the same.
SOURCE = """import carousel, numpy
@carousel.stage(output={"color": "u8[20, 48, 4]", "depth": "f32[20, 48]"})
def camera(frame, out_color, out_depth):
    numpy.asarray(out_color)[:] = numpy.arange(48).reshape(1, 48, 1)
    numpy.asarray(out_depth)[:] = frame.frame_number
"""
LOOKS = """import carousel, numpy
@carousel.stage
def looks(frame, color):
    x = numpy.asarray(color)
    assert x.shape == (20 // 2, 48 // 2, 4), x.shape
    assert (x[:, :, 0] == 2 * numpy.arange(24)).all(), x
"""


class Outputs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as out:
            out.write(text)

    def pipeline(self, stage, more=""):
        self.write("camera.py", SOURCE)
        self.write("looks.py", LOOKS)
        self.write("stage.py", stage)
        self.write("outputs.toml", f'[pipeline]\nname = "outputs-{os.getpid()}"\nsize = [64, 36]\ndevice = "cpu"\n'
                                   '[[stage]]\nname = "camera"\nrun = "camera.py"\n'
                                   f'[[stage]]\nname = "smaller"\nrun = "stage.py"\ninputs = ["camera"]\n{more}\n'
                                   '[[stage]]\nname = "looks"\nrun = "looks.py"\ninputs = ["smaller"]\n')
        return os.path.join(self.folder.name, "outputs.toml")

    def runs(self, stage, more=""):
        run = carousel.Pipeline(self.pipeline(stage, more)).start(frames=30)
        self.assertEqual(run.wait(60), 0, run.log_text(40))
        report = run.report()
        self.assertEqual([report[k] for k in ("frames", "lost", "torn", "restarts")], [30, 0, 0, 0], run.log_text(40))

    def refused(self, stage, more=""):
        done = subprocess.run([os.path.join(BUILD, "carousel"), "validate", self.pipeline(stage, more)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertNotIn("Traceback", done.stderr.splitlines()[-1])
        return " ".join(done.stderr.split())

    def test_an_output_hangs_on_its_input_s_planes_and_a_setting(self):
        with open(os.path.join(ROOT, "stages/python/README.md"), encoding="utf-8") as text:
            crop, = re.findall(r"^```python\n(def smaller.*?)^```$", text.read(), re.M | re.S)
        self.runs("import carousel, numpy\n" + crop, "factor = 2")

    def test_several_outputs_and_a_class_have_the_same(self):
        self.runs("""import carousel, numpy
def halves(config):
    height, width, rest = config.inputs["camera"]["color"].shape
    assert list(config.inputs) == ["camera"] and list(config.inputs["camera"]) == ["color", "depth"]
    assert str(config.inputs["camera"]["color"]) == "u8[20, 48, 4]"
    assert config.settings == {"factor": 2, "how": "plain"}, config.settings
    return {"color": carousel.image(width // config.settings["factor"], height // 2)}
@carousel.stage(outputs=halves)
class smaller:
    def __init__(self, *, factor: int, how: str = "plain"):
        self.factor = factor
    def process(self, color, out_color):
        numpy.asarray(out_color)[:] = numpy.asarray(color)[::2, ::self.factor]
""", "factor = 2")

    def test_a_plane_of_an_input_is_one_of_an_output(self):
        self.write("same.py", "import carousel\n@carousel.stage(output=lambda config: config.inputs['camera'])\n"
                              "def same(color, depth, out_color, out_depth):\n    out_color.copy_from(color)\n    out_depth.copy_from(depth)\n")
        file = self.pipeline("import carousel, numpy\n@carousel.stage(output={'color': 'u8[10, 24, 4]'})\n"
                             "def f(color, depth, out):\n    numpy.asarray(out)[:] = numpy.asarray(color)[::2, ::2]\n")
        with open(file, encoding="utf-8") as text:
            lines = text.read().replace('inputs = ["camera"]', 'inputs = ["same"]')
        self.write("outputs.toml", lines + '[[stage]]\nname = "same"\nrun = "same.py"\ninputs = ["camera"]\n')
        run = carousel.Pipeline(file).start(frames=30)
        self.assertEqual(run.wait(60), 0, run.log_text(40))
        self.assertEqual(run.report()["restarts"], 0, run.log_text(40))

    def test_a_wrong_function_is_reported_in_one_sentence(self):
        def stage(output):
            return f"import carousel\ndef of(config):\n    return {output}\n@carousel.stage(output=of)\n" \
                   "def f(color, out, *, factor: int = 2): pass\n"
        for text, expected in {
            "config.inputs['camra']": "stage.py, line 3: KeyError: 'camra'",
            "config.settings['facter']": "stage.py, line 3: KeyError: 'facter'",
            "{'color': 'u8[%s, 4]' % (config.inputs['camera']['color'].shape[0] / 2)}": "the extent '10.0' is not a number",
            "carousel.like": "f: output=carousel.like needs parentheses; write carousel.like(0)",
            "carousel.like(-1)": "f: output=carousel.like(-1); expected the number of an input, 0 for the first",
        }.items():
            self.assertIn(expected, self.refused(stage(text)), text)
        self.assertIn("factor = \"much\": expected a whole number", self.refused(stage("{'color': 'u8[1]'}"), 'factor = "much"'))

    def test_an_output_without_its_parentheses_is_reported(self):
        for word, whole in (("like", "like(0)"), ("image", "image()")):
            for option in (f"output=carousel.{word}", f"outputs={{'color': carousel.{word}}}"):
                owner = option.split("=")[0] + ("['color']" if "{" in option else "")
                self.assertIn(f"f: {owner}=carousel.{word} needs parentheses; write carousel.{whole}",
                              self.refused(f"import carousel\n@carousel.stage({option})\ndef f(frame): pass\n"))


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
