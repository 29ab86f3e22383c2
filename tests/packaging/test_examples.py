"""The example projects and those that `carousel new stage` writes: built against an installation, tested by their own tests, and run
in pipelines of installed programs.

Usage: test_examples.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import json
import os
import re
import subprocess
import sys
import unittest

from installed import Installation, run


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])
        cls.negative = cls.all.copy_of_example("negative")
        cls.scan = cls.all.copy_of_example("scan")
        cls.all.build_without_toolkit(cls.negative)
        cls.all.build_without_toolkit(cls.scan)
        cls.invert = os.path.join(cls.negative, "build/carousel-negative")

    @classmethod
    def tearDownClass(cls):
        cls.all.end()

    def describe(self, settings, inputs):
        asked = {"stage": "invert", "width": 64, "height": 48, "settings": settings, "inputs": inputs}
        done = subprocess.run([self.invert, "--describe"], input=json.dumps(asked), capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout)

    def picture(self):
        plane = {"name": "color", "element": "u8", "shape": [48, 64, 4], "offset": 256}
        return [{"stage": "fragment", "format": {"type": "carousel.image.rgba8", "planes": [plane], "constants": {}}}]

    def report_of(self, file, *words):
        """The report of 20 frames on the CPU."""
        report = file + ".json"
        self.all.carousel("run", file, "--frames", "20", "--device", "cpu", "--report", report, *words)
        with open(report, encoding="utf-8") as f:
            answer = json.load(f)
        self.assertEqual([answer[k] for k in ("frames", "lost", "repeated", "torn")], [20, 0, 0, 0])
        return answer

    def test_the_examples_pass_their_own_tests(self):
        self.all.test_project(self.negative)
        self.all.test_project(self.scan)
        average = self.all.copy_of_example("average")
        self.all.build_without_toolkit(average)
        self.all.test_project(average)

    def test_a_project_that_may_find_the_toolkit_is_configured_too(self):
        self.all.configure(self.all.copy_of_example("negative"))

    def test_the_outside_stage_describes_itself(self):
        code, answer = self.describe({"alpha": True}, self.picture())
        self.assertEqual(code, 0, answer)
        self.assertEqual(answer["format"]["planes"][0]["shape"], [48, 64, 4])
        self.assertEqual(answer["runs_on"], "cpu")

    def test_the_outside_stage_refuses_an_unknown_key_with_a_guess(self):
        code, answer = self.describe({"alhpa": True}, self.picture())
        self.assertEqual(code, 2, answer)
        self.assertEqual(answer["error"]["key"], "alhpa")
        self.assertIn("alpha", answer["error"]["message"])

    def test_the_outside_stage_runs_in_a_pipeline_of_installed_programs(self):
        words = ("--size", "96x64", "--set", "geometry.triangles=2000", "--out", "")
        file = os.path.join(self.negative, "negative.toml")
        inverted = self.report_of(file, *words)
        with open(file, encoding="utf-8") as f:
            before, after = f.read().split('[[stage]]\nname = "negative"')
        plain = os.path.join(self.negative, "plain.toml")
        with open(plain, "w", encoding="utf-8") as f:
            f.write(before + after[after.index("[[stage]]"):].replace('inputs = ["negative"]', 'inputs = ["fragment"]'))
        self.assertNotEqual(self.report_of(plain, *words)["image_hash"], inverted["image_hash"])

    def test_a_source_and_a_sink_of_one_s_own_run_in_a_pipeline(self):
        file = os.path.join(self.scan, "scan.toml")
        first, again = self.report_of(file, "--fps", "0"), self.report_of(file, "--fps", "0")
        other = self.report_of(file, "--fps", "0", "--set", "parameters.range=9")
        self.assertEqual(first["image_hash"], again["image_hash"])
        self.assertNotEqual(first["image_hash"], other["image_hash"])

    def test_a_users_programs_observe_a_run_and_take_part_in_one(self):
        folder = self.all.copy_of_example("port")
        self.all.build_without_toolkit(folder)
        newest = os.path.join(folder, "build/newest")
        file = os.path.join(self.scan, "scan.toml")
        self.all.carousel("up", file, "-d", "--device", "cpu", "--fps", "50")
        try:
            output = run(newest, "scan", "scan", "5", env=self.all.environment)
            numbers = [int(n) for n in re.findall(r"^frame (\d+): ", output, re.M)]
            self.assertEqual(len(numbers), 5, output)
            self.assertEqual(numbers, sorted(set(numbers)), output)
            done = subprocess.run([newest, "scan", "sacn"], capture_output=True, text=True, check=False, env=self.all.environment)
            self.assertEqual(done.returncode, 2)
            self.assertIn('did you mean "scan"?', done.stderr)
        finally:
            self.all.carousel("down", "-p", "scan")
        output = self.all.carousel("up", os.path.join(folder, "ports.toml"), "-d")
        self.addCleanup(subprocess.run, [self.all.program("carousel"), "down", "-p", "ports"], capture_output=True, env=self.all.environment)
        self.assertIn("0 processes ready", output)
        self.assertIn("no program at camera, analysis", output)
        feed = subprocess.Popen([os.path.join(folder, "build/feed"), "ports", "camera", "30"], env=self.all.environment)
        self.addCleanup(feed.kill)
        output = run(os.path.join(folder, "build/count"), "ports", "analysis", env=self.all.environment)
        self.assertIn("frame 29: mean 29.0, exposure 3.5 ms\n30 frames", output)
        self.assertEqual(feed.wait(20), 0)

    def test_a_stage_that_runs_on_gpus_alone_is_built_and_refused_on_the_cpu(self):
        if self.all.nvcc == "none":
            self.skipTest("no nvcc: the example with a kernel of its own isn't built")
        folder = self.all.copy_of_example("grayscale")
        self.all.build_with_nvcc(folder)
        self.all.test_project(folder)   # without a GPU it reports that and is skipped
        done = subprocess.run([self.all.program("carousel"), "validate", os.path.join(folder, "grayscale.toml"), "--device", "cpu"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("a GPU", done.stderr)


class NewStages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])

    @classmethod
    def tearDownClass(cls):
        cls.all.end()

    def new(self, name, *kind):
        folder = os.path.join(self.all.folder, name)
        output = self.all.carousel("new", "stage", name, *kind, folder)
        self.assertIn(f"-DCMAKE_PREFIX_PATH={self.all.prefix} ", output)   # this very installation
        return folder, [line.strip() for line in output.split("Next:\n")[1].splitlines()]

    def follow(self, commands):
        """The next steps that it prints."""
        text = "set -e\n" + "\n".join(commands).replace("--frames 100", "--frames 10 --device cpu")
        run("bash", "-c", text, env={**self.all.environment, "CXX": self.all.cxx})

    def test_a_new_stage_follows_its_own_instructions(self):
        folder, commands = self.new("3d-Blur_2")
        self.assertEqual(len(commands), 4)
        self.assertEqual(commands[0], f"cd {folder}")
        self.follow(commands)
        with open(os.path.join(folder, "README.md"), encoding="utf-8") as f:
            self.assertIn(self.all.prefix, f.read())

    def test_a_new_source_follows_its_own_instructions(self):
        self.follow(self.new("lidar", "--source")[1])

    def test_a_new_cuda_stage_is_built_and_passes_its_test(self):
        if self.all.nvcc == "none":
            self.skipTest("no nvcc: a new stage with a kernel of its own isn't built")
        folder, _ = self.new("edge-finder", "--cuda")
        self.all.build_with_nvcc(folder)
        self.all.test_project(folder)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
