"""Stages in Python in running pipelines, ports from Python, and pipelines that Python runs.

Usage: test_python.py BUILD ROOT
"""
import gc
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import interpreter

BUILD, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from processes import is_alive  # noqa: E402


def stage(name, run, inputs=(), more=""):
    run = run if "/" in run or run.endswith(".py") else f"{BUILD}/{run}"
    if run.endswith(".py") and "/" not in run:
        run = os.path.join(HERE, run)
    return f"[[stage]]\nname = \"{name}\"\nrun = \"{run}\"\ninputs = [{', '.join(repr(i) for i in inputs)}]\n{more}\n"


class Python(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def pipeline(self, *stages, more=""):
        path = os.path.join(self.folder.name, "test.toml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"[pipeline]\nname = \"python-{os.getpid()}\"\nsize = [64, 36]\ndevice = \"cpu\"\n{more}\n" + "".join(stages))
        return carousel.Pipeline(path)

    def end(self, run, code=0):
        self.assertEqual(run.wait(60), code, run.log_text(40))
        report = run.report()
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])
        return report

    def test_a_stage_sees_its_frame(self):
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("views", "views.py", ["source"], "count = 7"),
                            stage("eater", "eater.py", ["views"])).start(frames=50)
        report = self.end(run)
        self.assertEqual([report["frames"], report["restarts"]], [50, 0], run.log_text(40))

    def run_here(self, *stages, frames, more=""):
        """A run that was started in this test's folder."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.name)
        return self.pipeline(*stages, more=more).start(frames=frames)

    def test_files_in_the_output_directory_outlive_the_run_and_other_runs_leave_none(self):
        self.end(self.run_here(stage("source", "carousel-test-copy"), stage("eater", "eater.py", ["source"]), frames=20))
        self.assertEqual(os.listdir(self.folder.name), ["test.toml"])
        tally = os.path.join(ROOT, "stages", "examples", "tally", "tally.py")
        run = self.run_here(stage("source", "carousel-test-copy"), stage("tally", tally, ["source"]), frames=20)
        folder = self.end(run)["output_directory"]
        self.assertRegex(folder, f"^{re.escape(os.path.realpath(self.folder.name))}/runs/python-[0-9]+-[0-9]{{8}}-[0-9]{{6}}$")
        self.assertIn(f"output directory: {folder}", run.log_text(40))
        with open(os.path.join(folder, "tally.csv"), encoding="utf-8") as file:
            self.assertEqual([int(line.split(",")[0]) for line in file], list(range(20)))

    def test_a_tombstone_ends_no_ordinary_sink(self):
        # The sink's finish() reads frame["color"], which a tombstone lacks.
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("bad", "bad.py", ["source"], "max_attempts = 1"),
                            stage("summed", "summed.py", ["bad"])).start(frames=20)
        report = self.end(run, code=4)
        self.assertEqual([(d["ring_sequence"], d["stage"]) for d in report["dead_letters"]], [(10, "bad")])
        summed = next(s for s in report["sinks"] if s["stage"] == "summed")
        self.assertEqual([summed["records"], summed["tombstones"]], [20, 1], summed)
        self.assertEqual(next(s for s in report["stages"] if s["name"] == "summed")["restarts"], 0)

    def test_a_sink_that_asks_for_tombstones_gets_them_and_each_frame_is_given_up_once(self):
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("bad", "bad.py", ["source"], "max_attempts = 1"),
                            stage("tombs", "tombstones.py", ["bad"])).start(frames=20)
        self.end(run, code=4)
        self.assertIn("frame 10 is a tombstone: given up by stage bad", run.log_text(60))
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("bad", "bad.py", ["source"], "max_attempts = 1"),
                            stage("tombs", "tombstones.py", ["bad"], "refuses = true\nmax_attempts = 1")).start(frames=20)
        self.assertNotEqual(run.wait(60), 0)
        abandoned = [line for line in run.log_text(400).splitlines() if "tombs: frame 10 is given up after " in line]
        self.assertEqual(len(abandoned), 1, run.log_text(400))
        self.assertIn(" after 1 attempt", abandoned[0])

    def test_what_process_leaves_in_frame_local_is_that_frame_s_in_finish(self):
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("mixer", "local.py", ["source"])).start(frames=300)
        self.assertEqual(self.end(run)["restarts"], 0, run.log_text(40))

    def test_planes_of_each_element_type_are_what_numpy_takes_them_for(self):
        import elements
        with self.pipeline(stage("elements", "elements.py", more="max_attempts = 1"), stage("eater", "eater.py", ["elements"], "pause_s = 0.004"),
                           more="fps = 100").start() as run:
            for frame, _ in zip(run.open().latest("elements"), range(8)):
                for word, (kind, letter, _) in elements.TYPES.items():
                    array = numpy.asarray(frame[f"p_{word}"])
                    self.assertEqual((word, array.dtype, array.shape), (word, numpy.dtype(kind), (3, 2)))
                    wanted = elements.values(word, frame.frame_number)
                    self.assertEqual((word, array.tobytes()), (word, struct.pack(f"<6{letter}", *wanted)))
                    self.assertEqual(array.ravel().tolist(), wanted, word)
                for word, size in elements.WITHOUT_NUMPY.items():
                    array = numpy.asarray(frame[f"p_{word}"].bytes)
                    self.assertFalse(array.flags.writeable)
                    self.assertEqual((word, array.ravel().tolist()), (word, [(frame.frame_number + k) % 256 for k in range(6 * size)]))
                with self.assertRaisesRegex(BufferError, "Python's buffers have no bf16; torch.from_dlpack"):
                    numpy.asarray(frame["p_bf16"])
            run.end()
            report = self.end(run)
            self.assertEqual((report["restarts"], report["dead_letters"]), (0, []), run.log_text(40))

    def test_a_stage_with_writable_inputs_writes_to_them_and_is_reported_unguarded(self):
        file = os.path.join(self.folder.name, "in_place.py")
        for asks in (True, False):
            with open(file, "w", encoding="utf-8") as out:
                out.write(f"import carousel, numpy\n@carousel.stage(output=carousel.like(0), writable_inputs={asks}, bit_equal={asks})\n"
                          "def in_place(frame, color, out):\n"
                          f"    assert color.readonly != {asks} and numpy.asarray(color).flags.writeable == {asks}\n"
                          f"    if {asks}: numpy.asarray(color)[:] += 1\n"
                          f"    assert (numpy.asarray(color) == (frame.frame_number * 7 + 1 + {int(asks)}) % 256).all()\n"
                          "    out.copy_from(color)\n")
            pipeline = self.pipeline(stage("source", "carousel-test-copy"), stage("in_place", file, ["source"]),
                                     stage("eater", "eater.py", ["in_place"]))
            plan = subprocess.run([os.path.join(BUILD, "carousel"), "run", pipeline.file, "--dry-run"], capture_output=True, text=True)
            self.assertEqual("in_place could write to ring source" in " ".join(plan.stdout.split()), asks, plan.stdout + plan.stderr)
            checked = subprocess.run([os.path.join(BUILD, "carousel"), "validate", pipeline.file, "--json"], capture_output=True, text=True)
            self.assertEqual(json.loads(checked.stdout)["stages"][1]["bit_equal"], asks, checked.stderr)
            run = pipeline.start(frames=50)
            report = self.end(run)
            self.assertEqual([report["frames"], report["restarts"]], [50, 0], run.log_text(40))
            self.assertEqual("its inputs are unguarded: it requests writable inputs" in run.log_text(200), asks)

    def test_a_stage_looks_aside(self):
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("beside", "carousel-test-copy"),
                            stage("aside", "sampling.py", ["source"], 'sampled = ["beside"]'), stage("eater", "eater.py", ["aside"]),
                            stage("slow", "eater.py", ["beside"], "pause_s = 0.004")).start(frames=100, fps=50)   # `beside` may begin a second later
        report = self.end(run)
        self.assertEqual([report["frames"], report["restarts"]], [100, 0], run.log_text(40))
        self.assertEqual(report["not_comparable"], "stage aside takes the newest frame of beside")
        carried = {s["name"]: s.get("last_frame_carried") for s in report["stages"]}["aside"]
        self.assertGreater(carried["sampled"]["beside"], 0)

    def test_a_stage_writes_two_outputs(self):
        hashes = []
        for fork in ("fork.py", "carousel-test-fork"):
            run = self.pipeline(stage("numbers", "carousel-test-number"), stage("fork", fork, ["numbers"]),
                                stage("join", "carousel-test-fork", ["fork", "fork.square"])).start(frames=300)
            report = self.end(run)
            self.assertEqual([report["frames"], report["restarts"]], [300, 0], run.log_text(40))
            hashes.append(report["image_hash"])
        self.assertEqual(*hashes)

    def test_a_stage_reads_one_of_several_outputs_by_its_name(self):
        reader = os.path.join(self.folder.name, "reader.py")
        with open(reader, "w", encoding="utf-8") as out:
            out.write("import carousel, numpy\n@carousel.stage\ndef reader(frame, value, list):\n"
                      "    assert int(numpy.asarray(value)[0]) == (frame.frame_number * 1000) ** 2, value\n"
                      "    assert list.shape == (frame.frame_number % 200 + 1,) and frame.metadata['fork'] == frame.frame_number\n")
        run = self.pipeline(stage("numbers", "carousel-test-number"), stage("fork", "fork.py", ["numbers"]),
                            stage("reader", reader, ["fork.square"]), stage("eater", "eater.py", ["fork.number"])).start(frames=300)
        report = self.end(run)
        self.assertEqual([report["frames"], report["restarts"]], [300, 0], run.log_text(40))

    def test_a_given_up_frame_is_replayed_with_its_sampled_frames(self):
        file = os.path.join(self.folder.name, "dies.py")
        with open(file, "w", encoding="utf-8") as out:
            # a frame does not wait for a sampled input: the frames before 40 give `beside` time to start
            out.write("import carousel, numpy, time\n@carousel.stage(outputs={'color': carousel.like(0), 'half': carousel.image(8, 4)})\n"
                      "def dies(frame, color, out_color, out_half):\n"
                      "    side = frame.sampled('beside')\n"
                      "    if side is None and frame.frame_number < 40: time.sleep(0.1)\n"
                      "    if frame.frame_number == 40:\n"
                      "        raise ValueError(f'beside {side.frame_number}: {numpy.asarray(side[\"color\"])[5, 5, 1]}, half is {out_half.shape}')\n"
                      "    out_color.copy_from(color)\n    numpy.asarray(out_half)[:] = 1\n")
        run = self.pipeline(stage("source", "carousel-test-copy"), stage("beside", "carousel-test-copy"),
                            stage("dies", file, ["source"], 'sampled = ["beside"]\nmax_attempts = 1'), stage("eater", "eater.py", ["dies"]),
                            stage("half", "eater.py", ["dies.half"]), stage("slow", "eater.py", ["beside"], "pause_s = 0.1"),
                            more="allow_dead_letters = true\nfps = 100").start(frames=60)
        self.end(run)
        folder = os.path.join(os.environ["XDG_RUNTIME_DIR"], "carousel", run.name, "dead-letters", "dies-40")
        with open(os.path.join(folder, "letter.json"), encoding="utf-8") as text:
            sampled_number = json.load(text)["sampled"][0]["frame_number"]
        again = subprocess.run([os.path.join(BUILD, "carousel"), "replay", "--dead-letter", "40", "-p", run.name], capture_output=True, text=True)
        self.assertEqual(again.returncode, 73, again.stderr)
        self.assertIn(f"ValueError: beside {sampled_number}: {(sampled_number * 7 + 1) % 256}, half is (4, 8, 4)", again.stderr)

    def test_parameters_are_set_and_a_frame_is_replayed_with_its_own(self):
        file = os.path.join(self.folder.name, "reads.py")
        with open(file, "w", encoding="utf-8") as out:
            out.write("import carousel\n@carousel.stage\ndef reads(frame, color):\n"
                      "    if frame.frame_number == 6: raise ValueError(f'exposure is {frame.parameters[\"exposure\"]}')\n")
        with self.pipeline(stage("geometry", "carousel-geometry", more="triangles = 200"), stage("vertex", "carousel-vertex", ["geometry"]),
                           stage("fragment", "carousel-fragment", ["vertex"]), stage("reads", file, ["fragment"], "max_attempts = 1"),
                           more="allow_dead_letters = true\nfps = 100\n[parameters]\nexposure = 1.75").start() as run:
            run.set(wireframe=True, light=(0, 0, 1), shading="normals", exposure=numpy.float32(0.5), eye=numpy.array([0, 1, 3]))
            values = json.loads(run._run_command("set", "-p", run.name, "--json"))["values"]
            self.assertEqual([values[k] for k in ("wireframe", "light", "shading", "exposure", "eye")], [True, [0, 0, 1], "normals", 0.5, [0, 1, 3]])
            with self.assertRaisesRegex(carousel.Error, "exposure"):
                run.set(exposure=object())
            until = time.monotonic() + 30
            while "frame 6 is given up" not in run.log_text(200) and time.monotonic() < until:
                time.sleep(0.05)
            self.assertEqual(run.end(), 0, run.log_text(40))
            with self.assertRaisesRegex(carousel.Error, "^carousel ps [^{}]*: no pipeline [^{}]*$"):
                run.ps()
            message = re.search(r"ValueError: exposure is (1.75|0.5)", run.log_text(200)).group()
        again = subprocess.run([os.path.join(BUILD, "carousel"), "replay", "--dead-letter", "6", "-p", run.name], capture_output=True, text=True)
        self.assertEqual(again.returncode, 73, again.stderr)
        self.assertIn(message, again.stderr)

    def test_a_forked_child_leaves_the_run_and_its_observers_to_its_parent(self):
        pipeline = self.pipeline(stage("source", "carousel-test-copy"), stage("sink", "eater.py", ["source"], "pause_s = 0.004"), more="fps = 200")
        program = ("import carousel, os, sys\n"
                   f"with carousel.Pipeline({pipeline.file!r}).start() as run:\n"
                   "    newest = run.open().latest('source')\n"
                   "    frame = newest.next()\n"
                   "    child = os.fork()\n"
                   "    if child == 0:\n"
                   "        try: newest.next()\n"
                   "        except RuntimeError as refused: sys.exit(0 if 'a forked child can\\'t use it' in str(refused) else 1)\n"
                   "        sys.exit(2)\n"
                   "    print(os.waitpid(child, 0)[1], os.path.exists(run.log), newest.next().frame_number > frame.frame_number, run.end())\n")
        forks = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            self.assertEqual(forks.communicate(timeout=60)[0], "0 True True 0\n")
        finally:
            if forks.poll() is None:
                os.killpg(forks.pid, signal.SIGKILL)

    def test_a_run_continues_when_its_program_is_killed_and_down_ends_it(self):
        pipeline = self.pipeline(stage("source", "carousel-test-copy"), stage("sink", "eater.py", ["source"]), more="fps = 100")
        program = f"import carousel, time\nrun = carousel.Pipeline({pipeline.file!r}).start()\nprint('runs', flush=True)\ntime.sleep(100)\n"
        starts = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "TMPDIR": self.folder.name})   # what the killed program can't remove

        def run_carousel(*words):
            return subprocess.run([os.path.join(BUILD, "carousel"), *words, "-p", pipeline.name], capture_output=True, text=True, timeout=60)

        def now():
            return json.loads(run_carousel("ps", "--json").stdout)
        self.addCleanup(run_carousel, "down")
        self.addCleanup(starts.kill)
        self.assertEqual(starts.stdout.readline(), "runs\n")
        starts.kill()
        self.assertEqual(starts.wait(20), -signal.SIGKILL)
        starts.stdout.close()
        before = now()
        until = time.monotonic() + 30
        while now()["pipeline"]["frames"] < before["pipeline"]["frames"] + 50:   # more than the rings held
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        self.assertEqual(now()["pipeline"]["pid"], before["pipeline"]["pid"])
        down = run_carousel("down")
        self.assertEqual(down.returncode, 0, down.stderr)
        self.assertEqual(run_carousel("ps").returncode, 2)
        pids = [before["pipeline"]["pid"], *(s["pid"] for s in before["stages"])]
        while any(is_alive(pid) for pid in pids):
            self.assertLess(time.monotonic(), until, pids)
            time.sleep(0.05)

    def test_a_source_ends_and_a_sink_hashes(self):
        run = self.pipeline(stage("counted", "counted.py", more="count = 9"), stage("summed", "summed.py", ["counted"])).start()
        report = self.end(run)
        self.assertEqual([report["frames"], report["image_hash_of"]], [9, "crc32"])

    def test_the_newest_frame_and_what_stays_of_it(self):
        # A frame that its last reader is done with can't be read any more: this one is slow.
        with self.pipeline(stage("source", "carousel-test-copy"), stage("sink", "eater.py", ["source"], "pause_s = 0.004"),
                           more="fps = 200").start() as run:
            view = run.open()
            self.assertEqual(repr(view), f'<carousel.Run "{run.name}": source>')
            newest = view.latest("source")
            held = []   # arrays, frames and planes, each kept past the next frame
            for frame, _ in zip(newest, range(30)):
                held.append((frame.frame_number, numpy.asarray(frame["color"])))
                self.assertFalse(held[-1][1].flags.writeable)
            for frame_number, picture in held:
                self.assertTrue((picture == (frame_number * 7 + 1) % 256).all(), frame_number)
            self.assertEqual(sorted({frame_number for frame_number, _ in held}), [frame_number for frame_number, _ in held])
            self.assertEqual(len({picture.ctypes.data for _, picture in held}), 30)
            del held, picture
            gc.collect()
            copies = {numpy.asarray(newest.next()["color"].cpu()).tobytes() for _ in range(3)}
            self.assertEqual(len(copies), 3)
            self.assertEqual(newest.losses, {"revoked": 0, "torn": 0, "tombstones": 0})
            with self.assertRaisesRegex(carousel.ConfigError, "no stage \"sorce\".*did you mean \"source\""):
                view.latest("sorce")
            with self.assertRaisesRegex(RuntimeError, "is only valid for the frame of a stage"):
                newest.next().end_stream()
            self.assertEqual(run.end(), 0)
            self.assertIsNone(newest.next(5))
            self.assertTrue(newest.ended)
            self.assertEqual(list(newest), [])

    def test_the_ring_of_a_second_output_is_read_by_its_name(self):
        # An observer can't read a frame that its last reader is done with: one reader of each ring is slow.
        with self.pipeline(stage("numbers", "carousel-test-number"), stage("fork", "carousel-test-fork", ["numbers"]),
                           stage("join", "carousel-test-fork", ["fork", "fork.square"]), stage("slow", "eater.py", ["fork"], "pause_s = 0.004"),
                           stage("slower", "eater.py", ["fork.square"], "pause_s = 0.004"), more="fps = 100").start() as run:
            view = run.open()
            self.assertEqual(repr(view), f'<carousel.Run "{run.name}": numbers, fork, fork.square>')
            for ring, format, power in (("fork", "test.number {", 1), ("fork.number", "test.number {", 1), ("fork.square", "test.square {", 2)):
                newest = view.latest(ring)
                self.assertIn(format, repr(newest))
                frame = newest.next()
                self.assertEqual(int(numpy.asarray(frame["value"])[0]), (frame.frame_number * 1000) ** power, ring)
                self.assertEqual(dict(frame.metadata), {"fork": frame.frame_number})
            with self.assertRaisesRegex(carousel.ConfigError, "no ring \"fork.squar\" in .*; those of fork: fork, fork.square"):
                view.latest("fork.squar")
            run.end()
            self.end(run)

    def test_stages_of_a_run_that_python_has_started_have_its_interpreter(self):
        other = os.path.join(self.folder.name, "python3")
        with open(other, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\nexit 9\n")
        os.chmod(other, 0o755)
        before = {key: os.environ[key] for key in ("PATH", "CAROUSEL_PYTHON")}
        self.addCleanup(os.environ.update, before)
        os.environ["PATH"] = f"{self.folder.name}:{before['PATH']}"
        del os.environ["CAROUSEL_PYTHON"]
        self.end(self.pipeline(stage("source", "carousel-test-copy"), stage("sink", "eater.py", ["source"])).start(frames=5))
        os.environ["CAROUSEL_PYTHON"] = other
        with self.assertRaisesRegex(carousel.Error, "eater.py --describe` ended with exit code 9"):
            self.pipeline(stage("source", "carousel-test-copy"), stage("sink", "eater.py", ["source"])).start(frames=5)

    def test_a_pipeline_is_run_and_its_stage_killed(self):
        with self.pipeline(stage("source", "carousel-test-copy"), stage("copy", "copy_numpy.py", ["source"]),
                           stage("sink", "eater.py", ["copy"], "pause_s = 0.004"), more="fps = 100").start() as run:
            self.assertIn("running", repr(run))
            before = {s["name"]: s["pid"] for s in run.ps()["stages"]}
            run.kill("copy")
            newest = run.open().latest("copy")
            for _ in range(20):
                newest.next()
            after = {s["name"]: s["pid"] for s in run.ps()["stages"]}
            self.assertEqual([name for name in before if before[name] != after[name]], ["copy"])
            now = run.report()   # as far as it has progressed
            run.end()
            report = self.end(run)
            self.assertEqual(report["restarts"], 1)
            self.assertEqual({key: value for key, value in now.items() if value is None},
                             dict.fromkeys(("lost", "repeated", "torn", "ending", "exit_code")))
            self.assertEqual(set(now) - set(report), set())
            self.assertEqual([now[k] for k in ("pipeline", "file", "device", "restarts", "stalls", "damaged", "kills_at", "problems")],
                             [report[k] for k in ("pipeline", "file", "device", "restarts", "stalls", "damaged", "kills_at", "problems")])
            self.assertEqual(now["stages"], [{"name": s["name"], "restarts": s["restarts"]} for s in report["stages"]])
            self.assertTrue(20 <= now["frames"] <= report["frames"], (now["frames"], report["frames"]))
            with self.assertRaisesRegex(carousel.Error, "carousel kill copy"):
                run.kill("copy")

    def test_a_run_whose_space_alone_is_there_is_starting_or_done(self):
        run = carousel.Running.__new__(carousel.Running)
        run.ps = lambda: {"ok": True, "spaces": []}
        run._process = subprocess.Popen(["sleep", "100"])
        self.assertEqual(run.state(), "starting")
        run._process.kill()
        run._process.wait()
        self.assertEqual(run.state(), "done")

    def test_the_report_of_a_run_that_ends_while_it_is_asked_for_is_the_whole_one(self):
        for k in range(6):
            run = self.pipeline(stage("source", "carousel-test-copy"), stage("sink", "eater.py", ["source"])).start(frames=40)
            while (report := run.report())["exit_code"] is None:
                self.assertIsNone(report["lost"])
            self.assertEqual([report[key] for key in ("exit_code", "lost", "repeated", "torn", "frames")], [0, 0, 0, 0, 40])

    def test_a_pipeline_with_ports_has_started_before_a_program_opens_them(self):
        ports = "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = { value = \"u64[512]\" }\n" \
                "[[stage]]\nname = \"analysis\"\nrun = \"port\"\ninputs = [\"camera\"]\n"
        with self.pipeline(ports).start(frames=200, wait_s=20) as run:
            self.assertEqual({s["name"]: s["state"] for s in run.ps()["stages"]}, {"camera": "vacant", "analysis": "vacant"})
            programs = [subprocess.Popen([f"{BUILD}/carousel-test-port-io", *words], stdout=subprocess.DEVNULL)
                        for words in (("write", run.name, "camera"), ("read", run.name, "analysis"))]
            self.assertEqual(self.end(run)["frames"], 200)
            self.assertEqual([each.wait(20) for each in programs], [0, 0])

    def test_a_failed_start_reports_the_cause(self):
        with self.assertRaisesRegex(carousel.ConfigError, "nowhere.toml: No such file"):
            carousel.Pipeline("/nowhere.toml")
        with self.assertRaisesRegex(carousel.Error, "unknown key \"ends\""):
            self.pipeline(stage("source", "carousel-test-copy"), stage("copy", "counted.py", ["source"], "ends = 3"),
                          stage("views", "views.py", ["copy"]), stage("sink", "eater.py", ["views"])).start()
        with self.assertRaisesRegex(carousel.ConfigError, "no pipeline \"nobody\" is running"):
            carousel.open("nobody", wait_s=0)

    def test_a_stage_is_a_function_still(self):
        @carousel.stage(output=carousel.like(0))
        def add(a, out, *, by: int = 1):
            "Adds."
            out[:] = a + by
        into = numpy.zeros(3)
        add(numpy.ones(3), into, by=2)
        self.assertEqual(list(into), [3, 3, 3])
        self.assertEqual(repr(add), "<carousel.Stage add(a, out; by: int) -> carousel.like(0)>")
        self.assertEqual(add.__doc__, "Adds.")

    def test_the_examples_run_as_they_are(self):
        for example in ("tint", "tracker"):
            done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, f"stages/examples/{example}/test_{example}.py")], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "stages/examples/notebook/inspect_run.py"),
                               os.path.join(ROOT, "stages/examples/tint/tint.toml")], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("changed: ['tint']", done.stdout)
        # 1; on a busy machine a stage may be late
        self.assertRegex(done.stdout, "'lost': 0, 'repeated': 0, 'torn': 0, 'restarts': [1-9]")

    def test_carousel_writes_a_project_in_python(self):
        folder = os.path.join(self.folder.name, "warm")
        program = os.path.join(BUILD, "carousel")
        done = subprocess.run([program, "new", "stage", "warm", folder, "--python"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for command in done.stdout.split("Next:\n")[1].splitlines()[1:]:
            command = re.sub(r"\bpython3 ", sys.executable + " ", command.strip())   # the rest unchanged
            done = subprocess.run(command + (" --device cpu --out ''" if " run " in command else ""), shell=True, cwd=folder,
                                  capture_output=True, text=True, timeout=100)
            self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)


if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    import numpy
    unittest.main(argv=sys.argv[:1], verbosity=2)
