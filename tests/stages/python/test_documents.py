"""The Python lines of the documents: run in sequence, with NumPy instead of torch, and those of stages/python/README.md unchanged.
Usage: test_documents.py BUILD ROOT"""
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
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
                self.assertEqual(numpy.from_dlpack(f["color"].cpu()).shape, (64, 96, 4))
                self.assertGreaterEqual(f.frame_number, 0)
                self.assertEqual(f.capture_ns, 0)   # not set by its source
        run.kill("fragment")
        later = f.frame_number + 20
        with carousel.open(run.name) as view:
            for f in view.latest("sharpen"):
                if f.frame_number > later:
                    break
        run.end()
        self.assertEqual(run.wait(60), 0, run.log_text(40))
        report = run.report()
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0], run.log_text(40))
        self.assertEqual({s["name"]: s["restarts"] for s in report["stages"] if s["restarts"]}, {"fragment": 1})

class ReadMe(unittest.TestCase):
    """stages/python/README.md: its own lines, extracted from it."""

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(ROOT, "stages/python/README.md"), encoding="utf-8") as text:
            cls.text = text.read()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.before = os.getcwd()
        os.chdir(self.folder.name)
        self.addCleanup(os.chdir, self.before)

    def block(self, begin):
        """The one block of Python whose first line begins like this."""
        found = [b for b in re.findall(r"^```python\n(.*?)^```$", self.text, re.M | re.S) if b.startswith(begin)]
        self.assertEqual(len(found), 1, begin)
        return found[0]

    def start(self, text, **words):
        with open("demo.toml", "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "demo"\nsize = [64, 36]\ndevice = "cpu"\n{text}')
        run = carousel.Pipeline("demo.toml").start(**words)
        self.addCleanup(run.__exit__)
        return run

    def test_three_lines_lead_to_a_stage(self):
        commands, = re.findall(r"^```sh\n(\./pipelines/launch .*?)^```$", self.text, re.M | re.S)
        _, new, run = commands.splitlines()   # the set-up's test checks what the first one does
        small = " --device cpu --size 96x64 --set geometry.triangles=500 --out '' --no-color"
        for command in (new, run.replace("--frames 100", "--frames 20") + small):
            self.assertTrue(command.startswith("build/release/carousel "))
            done = subprocess.run(command.replace("build/release", BUILD), shell=True, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)
        self.assertIn("lost 0, repeated 0, torn 0", done.stderr + done.stdout)
        with open("warm/warm.py", encoding="utf-8") as text:
            written = re.sub(r"\s+", "", text.read())
        for line in self.block("@carousel.stage(output=carousel.like(0), device=").splitlines():
            self.assertIn(re.sub(r"\s+", "", re.sub(r"\s+#.*", "", line)), written, line)

    def test_a_stage_with_several_outputs(self):
        with open("split.py", "w", encoding="utf-8") as out:
            out.write("import carousel\n" + self.block("@carousel.stage(outputs="))
        stages = "".join(f'[[stage]]\nname = "{name}"\nrun = "{run}"\n{more}\n' for name, run, more in (
            ("source", f"{BUILD}/carousel-test-copy", ""), ("split", "split.py", 'inputs = ["source"]'),
            ("join", f"{HERE}/eater.py", 'inputs = ["split", "split.depth"]')))
        with open("split.toml", "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nsize = [64, 36]\ndevice = "cpu"\n{stages}')
        done = subprocess.run([os.path.join(BUILD, "carousel"), "validate", "split.toml"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_pipeline_without_a_file(self):
        with open("inverted.py", "w", encoding="utf-8") as out:
            out.write("import carousel, numpy\n" + self.block("@carousel.stage(device=\"cpu\", output=") + "    print(report['frames'], report['exit_code'])\n")
        done = subprocess.run([sys.executable, "-B", "inverted.py"], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.stdout, "100 0\n", done.stderr)
        self.assertEqual(carousel.Pipeline("inverted.toml").name, "inverted")

    def test_programs_at_ports(self):
        block = self.block('run = carousel.open("demo")')
        first, at = block.index("\n") + 1, block.index("with run.writer")
        run = self.start('[[stage]]\nname = "camera"\nrun = "port"\noutput = { color = "u8[36,64,4]" }\n'
                         '[[stage]]\nname = "analysis"\nrun = "port"\ninputs = ["camera"]\n', frames=20)
        printed, failures = [], []
        names = {"carousel": carousel, "numpy": numpy, "time": time, "picture": lambda: numpy.full((36, 64, 4), 7, "u1"),
                 "print": lambda *words: printed.append(words)}

        def runs(lines):
            try:
                exec(block[:first] + lines, dict(names))
            except Exception as wrong:   # reported below: an exception in a thread fails no test
                failures.append(wrong)
        both = [threading.Thread(target=runs, args=(lines,)) for lines in (block[first:at], block[at:])]
        for each in both:
            each.start()
        for each in both:
            each.join(60)
        self.assertEqual((failures, run.wait(20)), ([], 0), run.log_text(40))
        self.assertEqual(printed, [(n, 7.0, {"exposure_ms": 3.5}) for n in range(20)])

    def test_frames_are_fed_into_a_run_by_its_lines(self):
        text, = re.findall(r"^```sh\n(sudo apt-get install .*?)^```$", self.text, re.M | re.S)
        packages, builds, *lines = text.splitlines()
        with open(os.path.join(ROOT, "pipelines/setup/packages.sh"), encoding="utf-8") as script:
            taken, = re.findall(r"^carousel_python_packages\(\) \{\n    printf '%s\\n' (.*)$", script.read(), re.M)
        self.assertEqual(packages.split()[4:], re.findall(r"'(\S+)", taken))
        built = builds.split("&& cmake ")[1].split()   # the test's own build exists, configured and complete
        self.assertEqual((built[:2], built[3:]), (["--build", "build/release"], ["python_package"]))
        lines = "\n".join(lines).replace("python3 ", f"{sys.executable} -B ")
        lines = re.sub(r"(\$PWD/)?build/release", lambda _: BUILD, lines)
        self.addCleanup(subprocess.run, [os.path.join(BUILD, "carousel"), "down", "-p", "ports"], capture_output=True)   # if it has failed
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(["bash", "-ec", lines + "\nwait"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("frame 19: mean 19.0, exposure 3.5 ms\n20 frames", done.stdout)

    def test_an_observed_run_and_a_driven_run(self):
        inspect, drive = self.block('with carousel.open("demo") as run:').split("\n\n")
        stages = "".join(f'[[stage]]\nname = "{name}"\nrun = "{run}"\n{more}\n' for name, run, more in (
            ("source", f"{BUILD}/carousel-test-copy", ""), ("fragment", f"{BUILD}/carousel-test-copy", 'inputs = ["source"]'),
            ("sink", f"{HERE}/eater.py", 'inputs = ["fragment"]\npause_s = 0.004')))
        run, names = self.start(stages), {"carousel": carousel, "numpy": numpy}
        exec(inspect, names)
        self.assertEqual(names["f"]["color"].shape, (36, 64, 4))
        self.assertEqual(run.end(), 0)
        exec(drive, names)
        report = names["run"].report()
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn", "restarts")], [0, 0, 0, 1])


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    import numpy
    unittest.main(argv=sys.argv[:1], verbosity=2)
