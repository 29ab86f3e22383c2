"""pipelines/inference.toml: workers that share one set of weights, one of them killed under load.
Usage: test_inference.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [cpu|cuda:0|mps|two-gpus]: on the CPU; a GPU in time slices; the same with
isolation = "mps"; the workers on two GPUs in turn. Skipped, with the reason, if this machine has no such GPUs."""
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from live import CAROUSEL, PIPELINES, Live, wait_for  # noqa: E402
from processes import skip  # noqa: E402

WHERE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
DEVICE = "cpu" if WHERE == "cpu" else "cuda:0"
CLASSES, VIEWS = 6, 2400


def gpus():
    """Of this machine, as its driver lists them."""
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines()) if listed.returncode == 0 else 0


def why_not():
    """Why this can't be tried here; "" when it can."""
    if WHERE != "cpu" and gpus() < (2 if WHERE == "two-gpus" else 1):
        return f"{gpus()} GPUs here"
    return "no nvidia-cuda-mps-control here" if WHERE == "mps" and shutil.which("nvidia-cuda-mps-control") is None else ""


class Inference(Live):
    kept = None

    def file(self):
        """The shipped file; for MPS and two GPUs a copy with one more line, and the weights next to it."""
        shipped = os.path.join(PIPELINES, "inference.toml")
        if WHERE not in ("mps", "two-gpus"):
            return shipped
        with open(shipped, encoding="utf-8") as f:
            text = f.read()
        old, new = {"mps": ("[pipeline]\n", '[pipeline]\nisolation = "mps"\n'),
                    "two-gpus": ("instances = 3 ", 'device = ["cuda:0", "cuda:1"]\ninstances = 3 ')}[WHERE]
        self.assertEqual(text.count(old), 1)
        shutil.copy(os.path.join(PIPELINES, "shapes.net"), self.folder)
        return self.write("inference.toml", text.replace(old, new))

    def begin(self, name, batch=8, *more):
        """A run of VIEWS views, and where its answers and its report come."""
        out, report = os.path.join(self.folder, name + ".txt"), os.path.join(self.folder, name + ".json")
        words = ["run", self.file(), "--device", DEVICE, "--frames", str(VIEWS // batch), "--name", self.name,
                 "--no-color", "--set", f"views.batch={batch}", "--set", f"answers.out={out}", "--report", report, *more]
        p = subprocess.Popen([CAROUSEL, *words], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.stderr.close)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p, out, report

    def finish(self, begun):
        p, out, report = begun
        output = p.communicate(timeout=100)[1]
        self.assertEqual(p.returncode, 0, output)
        with open(out, encoding="ascii") as f, open(report, encoding="utf-8") as r:
            return f.read(), json.load(r)

    def undisturbed(self):
        """Answers and report of a fault-free run, the same for all tests."""
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
        print(f"{100 * right / VIEWS:.2f} % of {VIEWS} held-out views are right on {WHERE}", flush=True)
        self.assertGreaterEqual(right, 0.95 * VIEWS)
        begun = self.begin("disturbed", 8, "--fps", "150")
        killed = []
        for number in (1, 0, 2):
            frames = 50 * (1 + len(killed))
            wait_for("its frames", lambda n=frames: (s := self.ps().get("stages")) and sum(x["frames"] for x in s if x["name"] == "infer") > n)
            worker = {}

            def runs(n=number, into=worker):
                into.update(next(s for s in self.ps()["stages"] if s["name"] == "infer" and s["instance"] == n))
                return into["state"] == "running"
            wait_for("the worker", runs)
            os.kill(worker["pid"], signal.SIGKILL)
            killed.append(worker["pid"])
        if WHERE == "two-gpus":
            self.assertEqual({s["device"] for s in self.ps()["stages"] if s["name"] == "infer"}, {"cuda:0", "cuda:1"})
        disturbed, report = self.finish(begun)
        self.whole(report)
        self.assertEqual(len([r for r in report["recoveries"] if r["pid"] in killed]), 3, report["recoveries"])
        self.assertEqual(disturbed, answers)

    def test_another_size_of_the_batch_gives_the_same_classes(self):
        of_8, _ = self.undisturbed()
        of_5, report = self.finish(self.begin("of_5", 5))
        self.whole(report)
        self.assertEqual(of_5, of_8)

    def test_invalid_weights_are_reported_before_any_start(self):
        file = os.path.join(PIPELINES, "inference.toml")
        for weights, why in (("", 'the key weights is missing; expected weights = "FILE"'), (file, "it is not a network with 1024 inputs"), ("no.net", "create one with carousel-train-shapes FILE")):
            output = self.carousel("validate", file, "--set", f"infer.weights={weights}")
            self.assertEqual((weights, output.returncode), (weights, 2))
            self.assertIn(why, output.stderr)


if __name__ == "__main__":
    if why_not():
        skip(why_not())
    unittest.main(argv=sys.argv[:1], verbosity=2)
