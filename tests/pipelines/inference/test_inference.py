"""pipelines/inference.toml: workers that share one set of weights, one of them killed under load.
Usage: test_inference.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [DEVICE]."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from live import CAROUSEL, PIPELINES, Live, wait_for  # noqa: E402

DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
CLASSES, VIEWS = 6, 2400


class Inference(Live):
    kept = None

    def begin(self, name, batch=8, *more):
        """A run of VIEWS views, and where its answers and its report come."""
        out, report = os.path.join(self.folder, name + ".txt"), os.path.join(self.folder, name + ".json")
        words = ["run", os.path.join(PIPELINES, "inference.toml"), "--device", DEVICE, "--frames", str(VIEWS // batch), "--name", self.name,
                 "--no-color", "--set", f"views.batch={batch}", "--set", f"answers.out={out}", "--report", report, *more]
        p = subprocess.Popen([CAROUSEL, *words], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.stderr.close)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p, out, report

    def finish(self, begun):
        p, out, report = begun
        said = p.communicate(timeout=100)[1]
        self.assertEqual(p.returncode, 0, said)
        with open(out, encoding="ascii") as f, open(report, encoding="utf-8") as r:
            return f.read(), json.load(r)

    def undisturbed(self):
        """Answers and report of a run that nobody disturbs, the same for all tests."""
        if Inference.kept is None:
            Inference.kept = self.finish(self.begin("undisturbed"))
        return Inference.kept

    def whole(self, report):
        for count in ("lost", "repeated", "torn"):
            self.assertEqual((count, report[count]), (count, 0))

    def test_a_worker_killed_under_load_changes_no_answer(self):
        answers, report = self.undisturbed()
        self.whole(report)
        self.assertEqual(len(answers), VIEWS)
        right = sum(int(answers[n]) == n % CLASSES for n in range(VIEWS))  # no view of these was trained on
        print(f"{100 * right / VIEWS:.2f} % of {VIEWS} held-out views are right on {DEVICE}", flush=True)
        self.assertGreaterEqual(right, 0.95 * VIEWS)
        begun = self.begin("disturbed", 8, "--fps", "150")
        killed = []
        for number in (1, 0, 2):
            frames = 50 * (1 + len(killed))
            wait_for("its frames", lambda n=frames: (s := self.ps().get("stages")) and sum(x["frames"] for x in s if x["name"] == "infer") > n)
            worker = next(s for s in self.ps()["stages"] if s["name"] == "infer" and s["instance"] == number)
            wait_for("the worker", lambda n=number: next(s for s in self.ps()["stages"] if s["name"] == "infer" and s["instance"] == n)["state"] == "running")
            os.kill(worker["pid"], signal.SIGKILL)
            killed.append(worker["pid"])
        disturbed, report = self.finish(begun)
        self.whole(report)
        self.assertEqual(len([r for r in report["recoveries"] if r["pid"] in killed]), 3, report["recoveries"])
        self.assertEqual(disturbed, answers)

    def test_another_size_of_the_batch_gives_the_same_classes(self):
        of_8, _ = self.undisturbed()
        of_5, report = self.finish(self.begin("of_5", 5))
        self.whole(report)
        self.assertEqual(of_5, of_8)

    def test_weights_that_are_none_are_told_before_anything_starts(self):
        file = os.path.join(PIPELINES, "inference.toml")
        for weights, why in (("", 'weights = "FILE" is missing'), (file, "it is none of 1024 inputs"), ("no.net", "carousel-train-shapes FILE makes one")):
            said = self.carousel("validate", file, "--set", f"infer.weights={weights}")
            self.assertEqual((weights, said.returncode), (weights, 2))
            self.assertIn(why, said.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
