"""`carousel bench pipeline` as a user starts it. Usage: test_bench_pipeline.py FOLDER_OF_PROGRAMS PIPELINES."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CAROUSEL, DEMO = os.path.join(PROGRAMS, "carousel"), os.path.join(PIPELINES, "demo.toml")
SMALL = ("--device", "cpu", "--sizes", "96x64", "--set", "geometry.triangles=500")
SHORT = ("--rounds", "3", "--seconds", "0.5", "--warm-up", "0.2")


class BenchPipeline(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-bench-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}

    def bench(self, *words):
        return subprocess.run([CAROUSEL, "bench", "pipeline", *words], capture_output=True, text=True, timeout=100, check=False,
                              env=self.environment, stdin=subprocess.DEVNULL)

    def build(self, script):
        """A build whose `carousel` is a shell script; $real is the true one."""
        folder = os.path.join(self.folder, "build")
        os.makedirs(os.path.join(folder, "bin"))
        path = os.path.join(folder, "bin", "carousel")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nreal={shlex.quote(CAROUSEL)}\n{script}\n")
        os.chmod(path, 0o755)
        return folder

    def test_a_build_that_is_slower_on_purpose_is_found_slower_than_this_one(self):
        slow = self.build('if [ "$1" = run ]; then exec "$real" "$@" --set display.delay_ms=20; fi\nexec "$real" "$@"')
        for _ in range(3):   # other programs may disturb a run of half a second so much that no difference is visible
            done = self.bench(DEMO, *SMALL, *SHORT, "--against", slow, "--json", os.path.join(self.folder, "r.json"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(os.path.join(self.folder, "r.json"), encoding="utf-8") as f:
                report = json.load(f)
            cell = report["cells"][0]
            if cell["difference"]["frames_per_second"]["low"] > 0 and cell["difference"]["p50_ms"]["high"] < 0:
                break
        self.assertRegex(done.stdout.splitlines()[-1], r"^  B is [0-9.]+ % faster, 95 %: [0-9.]+ to [0-9.]+$")
        self.assertEqual((cell["mode"], cell["width"], cell["height"], report["latency_of"]), ("process", 96, 64, "window"))
        self.assertEqual(report["builds"], {"A": os.path.join(slow, "bin"), "B": PROGRAMS})
        self.assertTrue(any(text.startswith("mps:") for text in report["skipped"]), report["skipped"])
        for build in "AB":
            self.assertEqual(len(cell["runs"][build]), 3)
            for run in cell["runs"][build]:
                self.assertAlmostEqual(run["frames_per_second"], run["frames"] / run["seconds"])
                self.assertGreater(run["cpu_ms_per_frame"], 0)
                self.assertGreater(run["memory_bytes"], 1 << 20)
                self.assertGreater(run["resident_bytes"], run["memory_bytes"])
                self.assertGreaterEqual(run["p99_ms"], run["p50_ms"])
        median = cell["median"]
        self.assertLess(median["A"]["frames_per_second"], 51)       # 20 ms in the sink
        self.assertGreater(median["A"]["p50_ms"], 20)
        self.assertGreater(median["B"]["frames_per_second"], median["A"]["frames_per_second"])
        self.assertGreater(cell["difference"]["frames_per_second"]["low"], 0)
        self.assertLess(cell["difference"]["p50_ms"]["high"], 0)

    def test_a_build_against_itself_differs_only_by_noise(self):
        for _ in range(3):   # one of twenty is outside of a 95 % interval by chance, and other programs disturb short runs more
            done = self.bench(DEMO, *SMALL, *SHORT, "--set", "fps=60", "--against", PROGRAMS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            if "no difference beyond noise" in done.stdout.splitlines()[-1]:
                break
        self.assertIn("no difference beyond noise", done.stdout.splitlines()[-1])
        self.assertIn("frames/s", done.stdout)

    def test_an_older_build_without_counts_of_latencies_is_measured_and_both_by_whole_runs(self):
        old = self.build('if [ "$1" != ps ]; then exec "$real" "$@"; fi\n"$real" "$@" | sed "s/\\"end_to_end\\"/\\"none\\"/"')
        done = self.bench(DEMO, *SMALL, "--rounds", "1", "--frames", "30", "--warm-up", "0", "--against", old, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual(report["latency_of"], "run")
        for build in "AB":
            run = report["cells"][0]["runs"][build][0]
            self.assertGreater(run["p99_ms"], 0)
            self.assertGreaterEqual(run["frames"], 30)
        self.assertIn("at least two rounds", report["cells"][0]["verdict"])

    def test_a_pipeline_whose_sink_is_not_a_display_is_measured(self):
        os.symlink(os.path.join(PROGRAMS, "carousel-display"), os.path.join(self.folder, "my-sink"))
        with open(DEMO, encoding="utf-8") as f:
            text = f.read().replace('"carousel-display"', '"./my-sink"').replace('"frame_%05d.png"', '""')
        path = os.path.join(self.folder, "own.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        done = self.bench(path, *SMALL, "--rounds", "1", "--frames", "20", "--warm-up", "0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("frames/s", done.stdout)
        self.assertIn("left out: kernels alone:", done.stdout)   # they are of stages that Carousel ships

    def test_stages_as_threads_of_one_process_give_the_same_pictures_and_the_reference(self):
        threads = [os.path.join(PROGRAMS, "carousel-bench-threads"), DEMO, "--device", "cpu", "--size", "96x64",
                   "--set", "geometry.triangles=500", "--out", ""]
        done = subprocess.run([*threads, "--exactly", "40"], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = os.path.join(self.folder, "report.json")
        subprocess.run([CAROUSEL, "run", DEMO, *SMALL[:2], "--size", "96x64", *SMALL[4:], "--frames", "40", "--out", "",
                        "--report", report],
                       env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=True)
        with open(report, encoding="utf-8") as f:
            self.assertEqual(json.loads(done.stdout)["image_hash"], json.load(f)["image_hash"])
        done = self.bench(DEMO, *SMALL, *SHORT, "--modes", "none,process", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        none, process = json.loads(done.stdout)["cells"]
        self.assertEqual((none["mode"], none["of_none"], process["mode"]), ("none", None, "process"))
        self.assertGreater(none["runs"]["A"][0]["frames"], 0)
        share = process["of_none"]["A"]
        self.assertTrue(0 < share["low"] <= share["ratio"] <= share["high"], share)

    def test_depths_and_single_frames_are_cells_next_to_the_kernels_alone_and_drawn(self):
        plot = os.path.join(self.folder, "p.svg")
        done = self.bench(DEMO, *SMALL, "--rounds", "2", "--seconds", "0.3", "--warm-up", "0.1", "--modes", "none,process", "--depths", "1,3/4",
                          "--lone", "50", "--plot", plot, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        named = [(c["mode"], c["depth"]["in_flight"], c["depth"]["window"], c["load"]) for c in report["cells"]]
        self.assertEqual(named, [(m, d, w, load) for m in ("none", "process") for d, w in ((1, 1), (3, 4)) for load in ("saturated", "lone")])
        bound = report["bounds"][0]
        self.assertEqual((bound["width"], bound["height"], len(bound["rounds"])), (96, 64, 2))
        self.assertGreater(bound["lone_ms"], 0)
        self.assertIn(bound["rounds"][0]["queues"], (1, 2, 4))
        for saturated, lone in zip(report["cells"][::2], report["cells"][1::2]):
            for c in (saturated, lone):
                self.assertGreater(c["of_kernels"]["A"]["ratio"], 0)
            self.assertLess(lone["median"]["A"]["frames_per_second"], 60)
            self.assertGreater(lone["median"]["A"]["p50_ms"], bound["lone_ms"] / 2)
            self.assertGreater(saturated["median"]["A"]["frames_per_second"], lone["median"]["A"]["frames_per_second"])
        with open(plot, encoding="utf-8") as f:
            drawn = f.read()
        for text in ("kernels 96x64", "none 96x64", "process 96x64", "a single frame"):
            self.assertIn(text, drawn)

    def test_an_unshipped_or_failing_stage_has_no_baseline_and_the_cause_is_reported(self):
        with open(DEMO, encoding="utf-8") as f:
            text = f.read().replace('"carousel-display"', '"carousel-test-number"\nsink = true')
            text = re.sub(r"(?m)^(out|keep) *=.*$", "", text)
        path = os.path.join(self.folder, "own.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        threads = os.path.join(PROGRAMS, "carousel-bench-threads")
        named, beside = (os.path.join(self.folder, name) for name in ("named.toml", "beside.toml"))
        for file, more in ((named, 'inputs = ["fragment.color"]'), (beside, 'inputs = ["fragment"]\nsampled = ["geometry"]')):
            with open(DEMO, encoding="utf-8") as f, open(file, "w", encoding="utf-8") as to:
                to.write(f.read().replace('inputs = ["fragment"]', more))
        for words, code, expected in (((path,), 2, "carousel-test-number"),
                                      ((named,), 2, 'stage "fragment" has no output "color"'),
                                      ((beside,), 2, 'stage "display" accepts no sampled inputs'),
                                      ((DEMO, "--set", "geometry.mesh=none.obj"), 2, "none.obj"),
                                      ((DEMO, *SMALL[:2], "--out", "", "--set", "display.delay_ms=600000", "--patience", "3"), 1,
                                       'no frame was delivered for 3 s: stage "display" has finished 0'),
                                      ((DEMO, "--device", "cuda:7"), 3, "cuda:7")):
            done = subprocess.run([threads, *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(expected, done.stderr)

    def test_figures_of_a_run_in_which_a_stage_died_do_not_count(self):
        # A run that starts slowly has no process to kill at first.
        kills = '(sleep 0.4; for k in $(seq 200); do "$real" kill vertex && break; sleep 0.1; done) >/dev/null 2>&1 &'
        deadly = self.build(f'if [ "$1" = run ]; then {kills} fi\nexec "$real" "$@"')
        done = self.bench(DEMO, *SMALL, "--rounds", "1", "--seconds", "1", "--against", deadly)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "its figures are not valid: the report has [1-9] deaths")
        self.assertEqual(done.stdout, "")

    def test_what_cannot_be_measured_is_refused_before_anything_is_started(self):
        began = time.monotonic()
        for words, code, expected in (((DEMO, "--against", self.folder), 2, 'contains the program "carousel"'), (("none.toml",), 2, "none.toml"),
                                      ((DEMO, "--modes", "mps", "--device", "cpu"), 3, "MPS needs a GPU"),
                                      ((DEMO, "--set", "vertex.inflight=2"), 2, "in_flight"), ((DEMO, "--secnds", "2"), 2, '"--seconds"'),
                                      ((DEMO, "--json", os.path.join(self.folder, "no", "r.json")), 75, "r.json")):
            done = self.bench(*words)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(expected, done.stderr)
        self.assertLess(time.monotonic() - began, 20)

    def test_ctrl_c_ends_the_run_under_way_and_leaves_nothing(self):
        process = subprocess.Popen([CAROUSEL, "bench", "pipeline", DEMO, *SMALL, "--seconds", "60"], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        runs = os.path.join(self.folder, "carousel")
        until = time.monotonic() + 20
        while not (os.path.isdir(runs) and os.listdir(runs)) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(os.listdir(runs), [f"bench-{process.pid}"])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("no figures", err)
        self.assertEqual(os.listdir(runs), [])


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
