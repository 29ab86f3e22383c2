"""The Python lines by which the documents show Carousel, in one go, with NumPy in place of torch. Usage: test_documents.py BUILD ROOT"""
import os
import subprocess
import sys
import tempfile
import unittest

import interpreter

BUILD, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_the_lines_of_the_documents_run_as_they_are_written(self):
        with open(os.path.join(self.folder.name, "sharpen.py"), "w", encoding="utf-8") as out:
            out.write("""import carousel, numpy

@carousel.stage(output=carousel.like(0))
def sharpen(frame, color, out, *, strength: float = 0.5):
    x, y = numpy.asarray(color), numpy.asarray(out)
    y[...] = numpy.clip(x + strength * (x - numpy.roll(x, 1, axis=1).astype("f4")), 0, 255).astype("u1")
""")
        demo = os.path.join(self.folder.name, "demo.toml")
        with open(os.path.join(ROOT, "pipelines/demo.toml"), encoding="utf-8") as text, open(demo, "w", encoding="utf-8") as out:
            out.write(text.read() + '\n[[stage]]\nname = "sharpen"\nrun = "sharpen.py"\ninputs = ["fragment"]\nstrength = 0.8\n'
                                    f'[[stage]]\nname = "eater"\nrun = "{HERE}/eater.py"\ninputs = ["sharpen"]\n')
        program = os.path.join(BUILD, "carousel")
        self.assertEqual(subprocess.run([program, "validate", demo, "--device", "cpu"], capture_output=True).returncode, 0)
        refused = subprocess.run([program, "validate", demo, "--device", "cpu", "--set", "sharpen.strength=much"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("strength", refused.stderr)
        run = carousel.Pipeline(demo).start(device="cpu", fps=50, name=f"demo-{os.getpid()}",
                                            options=["--size", "96x64", "--set", "geometry.triangles=500", "--out", ""])
        with carousel.open(run.name) as view:   # as in a notebook
            for ring in ("fragment", "sharpen"):
                f = view.latest(ring).next()
                self.assertEqual(numpy.asarray(f["color"].cpu()).shape, (64, 96, 4))
                self.assertGreaterEqual(f.sequence, 0)
                self.assertEqual(f.capture_ns, 0)   # its source has not said
        run.kill("fragment")
        later = f.sequence + 20
        with carousel.open(run.name) as view:
            for f in view.latest("sharpen"):
                if f.sequence > later:
                    break
        run.stop()
        self.assertEqual(run.wait(60), 0, run.log_text(40))
        report = run.report()
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0], run.log_text(40))
        self.assertEqual({s["name"]: s["restarts"] for s in report["stages"] if s["restarts"]}, {"fragment": 1})


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    import numpy
    unittest.main(argv=sys.argv[:1], verbosity=2)
