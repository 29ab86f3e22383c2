"""Pipelines that are built in Python, and everything that Python does with their runs.

Usage: test_pipelines.py BUILD
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

import interpreter

BUILD = os.path.abspath(sys.argv[1])

# A program whose own file has the stages of the pipeline that it runs.
SCRIPT = """
import logging
import sys

import carousel

log = logging.getLogger("script")

@carousel.stage(output=carousel.image(), device="cpu")
def paints(frame, out, *, shade: int):
    memoryview(out).cast("B")[:4] = bytes([shade] * 4)

@carousel.stage(device="cpu")
class checks:
    def __init__(self, *, shade: int):
        self.shade = shade

    def process(self, frame, color):
        if memoryview(color).cast("B")[0] != self.shade:
            raise ValueError("another shade")
        log.debug("not shown")
        if frame.frame_number == 3:
            log.info("third\\nin two lines")
            log.warning("careful")
            try:
                raise KeyError("here")
            except KeyError:
                log.exception("broken")
            log.critical("worst")

def pipeline(**more):
    return carousel.Pipeline(stages=[{"run": paints, "shade": 7}, {"run": checks, "inputs": ["paints"], "shade": 7, **more}],
                             name=f"script-{sys.argv[1]}", size=(8, 4), fps=100, device="cpu")

if __name__ == "__main__":
    report = pipeline().run(frames=20)
    print(report["frames"], report["exit_code"], report["lost"])
"""


class Pipelines(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def built(self, *stages, **keys):
        return carousel.Pipeline(stages=[{"name": "source", "run": f"{BUILD}/carousel-test-copy"}, *stages],
                                 **{"name": f"built-{os.getpid()}", "size": (64, 36), "device": "cpu", "fps": 100, **keys})

    def eater(self, **more):
        return {"name": "eater", "run": os.path.join(HERE, "eater.py"), "inputs": ["source"], **more}

    def test_a_script_runs_the_stages_of_its_own_file(self):
        script = self.write("script.py", SCRIPT)
        done = subprocess.run([sys.executable, "-B", script, str(os.getpid())], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.stdout, done.returncode), ("20 0 0\n", 0), done.stderr)
        unguarded = self.write("unguarded.py", SCRIPT.replace('if __name__ == "__main__":', "if True:"))
        done = subprocess.run([sys.executable, "-B", unguarded, str(os.getpid())], capture_output=True, text=True, timeout=100)
        self.assertRegex(done.stderr, "ConfigError: .*unguarded.py starts a pipeline while the process of a stage loads it: start the pipeline below if __name__")

    def load(self):
        """The script as a module of this program."""
        self.write("script_module.py", SCRIPT)
        sys.path.insert(0, self.folder)
        self.addCleanup(sys.path.remove, self.folder)
        self.addCleanup(sys.modules.pop, "script_module")
        import script_module
        self.addCleanup(setattr, sys, "argv", sys.argv)
        sys.argv = ["", str(os.getpid())]
        return script_module

    def test_levels_of_python_s_logging_are_those_of_the_run_s_log(self):
        with self.load().pipeline().start() as run:
            until = time.monotonic() + 60
            while not any("worst" in record["line"] for record in run.logs("checks")):
                self.assertLess(time.monotonic(), until, run.log_text(40))
                time.sleep(0.05)
            records = run.logs("checks")
            self.assertEqual({record["stage"] for record in records}, {"checks"})
            self.assertEqual({record["pid"] for record in records}, {s["pid"] for s in run.ps()["stages"] if s["name"] == "checks"})
            wanted = [("info", "script: third"), ("info", "    in two lines"), ("warning", "warning: script: careful"), ("error", "error: script: broken"),
                      ("error", "    Traceback (most recent call last):")]
            found = [(record["level"], record["line"]) for record in records]
            at = found.index(wanted[0])
            self.assertEqual(found[at:at + len(wanted)], wanted)
            self.assertEqual(found[-1], ("error", "error: script: worst"))
            self.assertNotIn("not shown", str(records))
            self.assertEqual({record["level"] for record in run.logs("checks", level="warning")}, {"warning", "error"})
            self.assertEqual([record["line"] for record in run.logs("checks", level="error", lines=1)], ["error: script: worst"])
            with self.assertRaisesRegex(carousel.Error, "--level waning: unknown level; expected one of debug, info, warning, error; did you mean"):
                run.logs(level="waning")

    def test_a_pipeline_is_the_same_after_a_round_trip_through_a_file(self):
        made = self.built(self.eater(pause_s=0.001, none=None), {"name": "odd", "run": pathlib.Path("a b") / "c.py", "inputs": ("source",), "text": "\"\\\n\t\x7fé😀",
                                     "values": {"a b": [1, -2.5, True, 1e300]}}, parameters={"gain": 2.0},
                          link={"source": {"window": 3}, "fork": {"guard": "none", "square": {"window": 2}}}, hosts={"b": {"address": "10.0.0.1"}})
        read = tomllib.loads(made.to_toml())
        self.assertEqual(read["pipeline"]["size"], [64, 36])
        self.assertEqual(read["pipeline"]["folder"], os.getcwd())
        self.assertEqual(read["stage"][1], {"name": "eater", "run": f"{HERE}/eater.py", "inputs": ["source"], "pause_s": 0.001})
        self.assertEqual(read["stage"][2], {"name": "odd", "run": "a b/c.py", "inputs": ["source"], "text": "\"\\\n\t\x7fé😀",
                                            "values": {"a b": [1, -2.5, True, 1e300]}})
        self.assertEqual(read["link"], {"source": {"window": 3}, "fork": {"guard": "none", "square": {"window": 2}}})
        elsewhere = os.path.join(self.folder, "saved.toml")
        made.save(elsewhere)
        again = carousel.Pipeline(elsewhere)
        self.assertEqual((again.name, again.folder, tomllib.loads(again.to_toml())), (made.name, os.getcwd(), read))
        again.save("saved-here.toml")
        self.addCleanup(os.remove, os.path.abspath("saved-here.toml"))
        with open("saved-here.toml", "rb") as text:
            self.assertNotIn("folder", tomllib.load(text)["pipeline"])

    def test_errors_of_a_built_pipeline_name_the_stage_and_the_key(self):
        for stages, expected in {
            "3": "stages[0]: 3: expected a dict of keys, or a function or class with @carousel.stage",
            "{'name': 'a', 'run': 'b', 'level': object}": "stage \"a\": level = <class 'object'>: expected a bool, a number, a text",
            "{'name': 'a', 'run': 'b', 3: 4}": "stage \"a\": the key 3 is not a text",
            "{'run': print}": "stages[0]: run: <built-in function print> has no decorator @carousel.stage",
        }.items():
            with self.assertRaises(carousel.ConfigError) as refused:
                carousel.Pipeline(stages=[eval(stages)])
            self.assertIn(expected, str(refused.exception))
        with self.assertRaisesRegex(TypeError, "expected a file or stages"):
            carousel.Pipeline()
        inner = carousel.stage(lambda color: None)
        with self.assertRaisesRegex(carousel.ConfigError, "run: <lambda> is not at the top level of .*test_pipelines.py"):
            carousel.Pipeline(stages=[{"name": "x", "run": inner}])
        for pipeline, expected in (
                (self.built(self.eater(in_flight=99)), "stage \"eater\": in_flight: in_flight = 99: expected a whole number from 1 to 16"),
                (self.built(self.eater(pause_s="long")), "stage \"eater\": pause_s"),
                (self.built(self.eater(), fsp=3), "unknown key \"fsp\" in [pipeline]"),
                (self.built(self.eater(inputs=["sorce"])), "stage \"eater\""),
                (self.built(self.eater(), link={"source": {"window": 99}}), "link.source: window: window = 99")):
            with self.assertRaises(carousel.ConfigError) as refused:
                pipeline.start()
            self.assertIn(expected, str(refused.exception))
            self.assertNotIn("pipeline.toml", str(refused.exception))

    def test_relative_paths_of_a_built_pipeline_refer_to_its_folder(self):
        self.write("sink.py", "import carousel\n@carousel.stage(device='cpu')\ndef sink(frame, color): pass\n")
        sink = {"name": "sink", "run": "sink.py", "inputs": ["source"]}
        self.assertEqual(self.built(sink, folder=self.folder).run(frames=5)["frames"], 5)
        with self.assertRaisesRegex(carousel.ConfigError, f"stage \"sink\": run = \"sink.py\": {re.escape(os.getcwd())}/sink.py does not exist"):
            self.built(sink).start()

    def until(self, run, true):
        until = time.monotonic() + 60
        while not true():
            self.assertLess(time.monotonic(), until, run.log_text(40))
            time.sleep(0.02)

    def test_a_run_is_paused_taken_down_traced_and_measured(self):
        with self.built(self.eater()).start() as run:
            def state():
                return {s["name"]: s["state"] for s in run.ps()["stages"]}["eater"]

            run.pause("eater")
            self.assertEqual(state(), "stopped")
            with self.assertRaisesRegex(carousel.Error, "carousel cont source"):
                run.resume("source")
            run.resume("eater")
            self.until(run, lambda: state() == "running")
            run.down("eater")
            self.until(run, lambda: state() == "down")
            run.up("eater")
            self.until(run, lambda: state() == "running")
            before = run.ps()["pipeline"]["restarts"]
            run.inject("eater", "exit")
            self.until(run, lambda: run.ps()["pipeline"]["restarts"] > before and state() == "running")
            with self.assertRaisesRegex(carousel.Error, "unknown fault; expected hang"):
                run.inject("eater", "hnag")
            file = run.trace(os.path.join(self.folder, "trace.json"), frames=5)
            with open(file, encoding="utf-8") as text:
                self.assertTrue(json.load(text)["traceEvents"])
            self.assertTrue(any(record["stage"] == "carousel" for record in run.logs("carousel")))
            if os.access(os.path.join(BUILD, "carousel-web"), os.X_OK):   # not in a build without extras
                metrics = run.metrics()
                self.assertEqual(metrics[f'carousel_up{{pipeline="{run.name}"}}'], 1)
                self.assertTrue(any(name.startswith("carousel_stage_") and 'stage="eater"' in name for name in metrics), metrics)
            self.assertEqual(run.end(), 0, run.log_text(40))
            report = run.report()
            self.assertEqual([report[key] for key in ("lost", "repeated", "torn", "dead_letters")], [0, 0, 0, []])
            with self.assertRaisesRegex(carousel.Error, "Logs are deleted at the end of a run"):
                run.logs()


HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
