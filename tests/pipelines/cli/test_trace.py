"""`carousel trace` of a real pipeline on the CPU: every frame once in every stage, flows that join, a killed stage, refusals.
Usage: test_trace.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import collections
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
STAGES = ["geometry", "vertex", "fragment", "display"]
FORK = f"""[pipeline]
name = "forked"
[[stage]]
name = "numbers"
run = "{PROGRAMS}/carousel-test-number"
[[stage]]
name = "fork"
run = "{PROGRAMS}/carousel-test-fork"
inputs = ["numbers"]
[[stage]]
name = "join"
run = "{PROGRAMS}/carousel-test-fork"
inputs = ["fork", "fork.square"]
"""
CARRIES = """[pipeline]
name = "demo"
""" + "".join(f"""[[stage]]
name = "{name}"
run = "{PROGRAMS}/carousel-test-{program}"
{more}
""" for name, program, more in (("numbers", "number", "carries = true"), ("middle", "number", 'carries = true\ninputs = ["numbers"]'),
                                ("sink", "number", 'carries = true\ninputs = ["middle"]\nsink = true\nfinish_ms = 10'), ("camera", "side", ""), ("pose", "side", ""),
                                ("looker", "side", 'inputs = ["camera"]\nsampled = ["pose"]'), ("screen", "side", 'inputs = ["looker"]\nsink = true\nslow_ms = 10'),
                                ("poses", "side", 'inputs = ["pose"]\nsink = true')))


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-trace-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "CAROUSEL_LOG": "warning"}
        self.file = os.path.join(self.folder, "trace.json")

    def start_run(self, *options, pipeline="demo.toml", keys=("--set", "geometry.triangles=200", "--out", "")):
        run = subprocess.Popen([os.path.join(PROGRAMS, "carousel"), "run", os.path.join(PIPELINES, pipeline), "--device", "cpu", "--size",
                                "64x36", "--fps", "300", "--no-color", *keys, *options], env=self.environment, cwd=self.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, run)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            stages = self.stages()
            if stages and all(s["state"] == "running" and s["frames"] > 5 for s in stages):
                return run
            time.sleep(0.05)
        self.fail("the pipeline does not run within 30 s")

    def wait_tracing(self):
        """Until frames are being traced: the rings are there, and a second has passed."""
        until = time.monotonic() + 20
        while not any(n.startswith("carousel-") and n.endswith(".trace") for n in os.listdir("/dev/shm")):
            self.assertLess(time.monotonic(), until, "no trace begins")
            time.sleep(0.02)
        time.sleep(1)

    def wait_for_processes(self, names, killed):
        """Until all of these stages run, in processes other than those that were killed. Returns their pids by name."""
        until = time.monotonic() + 20
        while True:
            pids = {s["name"]: s["pid"] for s in self.stages() if s["state"] == "running" and s["pid"]}
            if all(pids.get(n) and (n, pids[n]) not in killed for n in names):
                return pids
            self.assertLess(time.monotonic(), until, f"{names} do not all run")
            time.sleep(0.05)

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def carousel(self, *words):
        return subprocess.run([os.path.join(PROGRAMS, "carousel"), *words], env=self.environment, cwd=self.folder, capture_output=True,
                              text=True, timeout=60)

    def stages(self):
        try:
            return json.loads(self.carousel("ps", "--json").stdout)["stages"]
        except (ValueError, KeyError):
            return []

    def ask(self, request):
        """One command over the control socket of the demo."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(20)
            s.connect(os.path.join(self.folder, "carousel", "demo", "control.sock"))
            s.sendall(json.dumps(request).encode())
            return json.loads(s.recv(1 << 20))

    def start_trace(self, *words):
        trace = subprocess.Popen([os.path.join(PROGRAMS, "carousel"), "trace", self.file, *words], env=self.environment, cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, trace)
        return trace

    def load(self):
        with open(self.file, encoding="utf-8") as f:
            return json.load(f)

    def bars(self, trace):
        """stage -> sequence -> bars of frames that were not discarded."""
        names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"}
        bars = {name: collections.defaultdict(list) for name in names.values()}
        for e in trace["traceEvents"]:
            if e["ph"] == "X" and e["cat"] == "frame":
                bars[names[e["pid"]]][e["args"]["ring_sequence"]].append(e)
        return bars

    def check_every_frame(self, trace, stages=STAGES):
        other, bars = trace["otherData"], self.bars(trace)
        self.assertGreater(other["frames"], 20)
        self.assertEqual(other["missing_bars"], 0)
        self.assertEqual(other["records_overwritten"], 0)
        self.assertEqual(other["last_ring_sequence"] - other["first_ring_sequence"] + 1, other["frames"], "no sequence of the window is missing")
        for stage in stages:
            for frame_number in range(other["first_ring_sequence"], other["last_ring_sequence"] + 1):
                self.assertEqual(len(bars[stage][frame_number]), 1, f"frame {frame_number} in {stage}")
        return bars

    def check_flows(self, trace, bars, stages=STAGES):
        """Each flow's steps lie at the beginning of that frame's own bars, in order."""
        flows = collections.defaultdict(list)
        for e in trace["traceEvents"]:
            if e["ph"] in "stf":
                flows[e["id"]].append(e)
        for frame_number in range(trace["otherData"]["first_ring_sequence"], trace["otherData"]["last_ring_sequence"] + 1):
            steps = sorted(flows[frame_number], key=lambda e: e["ts"])
            self.assertEqual("".join(e["ph"] for e in steps), "s" + "t" * (len(stages) - 2) + "f", frame_number)
            own = sorted((bars[s][frame_number][0] for s in stages), key=lambda e: e["ts"])
            self.assertEqual([(e["pid"], e["tid"], e["ts"]) for e in steps], [(e["pid"], e["tid"], e["ts"]) for e in own])

    def check_nesting(self, trace):
        """Bars of one thread never overlap in part, or a viewer draws nonsense."""
        threads = collections.defaultdict(list)
        for e in trace["traceEvents"]:
            if e["ph"] == "X":
                self.assertGreaterEqual(e["dur"], 0)
                threads[e["pid"], e["tid"]].append((e["ts"], -e["dur"]))
        for thread, bars in threads.items():
            open_until = []
            for begin, minus in sorted(bars):
                end = begin - minus
                while open_until and open_until[-1] <= begin + 0.002:
                    open_until.pop()
                if open_until:
                    self.assertLessEqual(end, open_until[-1] + 0.002, thread)
                open_until.append(end)

    def check_since_capture(self, bars, run_ms):
        """Downstream of the source, which sets a capture time 5 ms ago for each frame, bars show the time since; others show none."""
        shown = {stage: {n: (b["ts"] / 1000, b["args"]["since_capture_ms"]) for n, (b, *_) in bars[stage].items()
                         if "since_capture_ms" in b["args"]} for stage in bars}
        self.assertEqual({stage for stage in bars if shown[stage]}, {"middle", "sink"})
        compared = 0
        for stage in ("middle", "sink"):
            self.assertEqual(shown[stage].keys(), bars[stage].keys())
            for n, (taken_up_ms, since_ms) in shown[stage].items():
                self.assertTrue(5 <= since_ms < run_ms, (stage, n, since_ms, run_ms))
                for source in bars["numbers"].get(n, []):   # it has set the time while it had the frame
                    begin_ms, end_ms = source["ts"] / 1000, (source["ts"] + source["dur"]) / 1000
                    self.assertTrue(begin_ms - 0.01 <= taken_up_ms - since_ms + 5 <= end_ms + 0.01, (stage, n, source))
                    compared += 1
        self.assertGreater(compared, 40)

    def test_every_frame_passes_every_stage_exactly_once(self):
        self.start_run()
        trace = self.start_trace("--seconds", "1")
        out, err = trace.communicate(timeout=30)
        self.assertEqual((trace.returncode, err), (0, ""), out)
        t = self.load()
        bars = self.check_every_frame(t)
        self.check_flows(t, bars)
        self.check_nesting(t)
        names = {e["args"]["name"] for e in t["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertTrue({"fragment lane 0", "vertex lane 1", "display waits"} <= names, names)
        counters = {(e["pid"], e["name"]) for e in t["traceEvents"] if e["ph"] == "C"}
        self.assertTrue({(2, "frames/s"), (5, "frames/s"), (1, "output ring of fragment")} <= counters, counters)
        phases = collections.Counter(e["name"] for e in t["traceEvents"] if e["ph"] == "X" and e["cat"] == "phase")
        for phase in ("process", "device", "release"):
            self.assertGreater(phases[phase], 20, phases)
        self.assertIn("open it at ui.perfetto.dev", out)

    def test_a_frame_has_what_it_carries(self):
        file = os.path.join(self.folder, "carries.toml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(CARRIES)
        began = time.monotonic()
        self.start_run(pipeline=file, keys=())
        # Headers are sampled, and the sinks are slow, so that there is time to, on a machine with other load in the second or third trace:
        # each frame that was seen has its own.
        for _ in range(8):
            done = self.carousel("trace", self.file, "--seconds", "1")
            self.assertEqual(done.returncode, 0, done.stderr)
            bars = self.bars(self.load())
            carried = {stage: {n: b["args"]["carries"] for n, (b, *_) in bars[stage].items() if "carries" in b["args"]} for stage in bars}
            if min(len(carried[stage]) for stage in ("numbers", "middle")) > 2:
                break
        self.check_since_capture(bars, (time.monotonic() - began) * 1000)
        for stage, own in (("numbers", lambda n: {"number": n}), ("middle", lambda n: {"number": n, "twice": 2 * n})):
            self.assertGreater(len(carried[stage]), 2, stage)
            for n, all_of_it in carried[stage].items():
                self.assertEqual(all_of_it, {"metadata": {**own(n), "by": stage}, "in use": {"list": [n * 7 % 101, 2]}})
        self.assertEqual(carried["camera"], {})
        self.assertGreater(len([c for c in carried["looker"].values() if c["sampled"] != [None]]), 2)
        for all_of_it in carried["looker"].values():   # it has noted the frame of the other ring that it was given
            self.assertEqual([all_of_it.get("metadata", {}).get("latest")], all_of_it["sampled"])

    def test_killed_stages_are_shown_and_nothing_is_missing(self):
        self.start_run()
        trace = self.start_trace("--seconds", "60")
        self.wait_tracing()
        killed = []
        for stage in ("fragment", "display", "vertex", "geometry", "fragment"):
            time.sleep(0.35)
            pid = self.wait_for_processes([stage], killed)[stage]
            os.kill(pid, signal.SIGKILL)
            killed.append((stage, pid))
        self.wait_for_processes(STAGES, killed)
        time.sleep(0.3)   # some frames after the last return
        trace.send_signal(signal.SIGINT)
        out, err = trace.communicate(timeout=30)
        self.assertEqual(trace.returncode, 0, err)
        t = self.load()
        bars = self.check_every_frame(t)
        self.check_flows(t, bars)
        instants = [e for e in t["traceEvents"] if e["ph"] == "i"]
        for stage, pid in killed:
            died = [e for e in instants if e["cat"] == "died" and e["name"].startswith(f"{stage} (pid {pid}) died: ")]
            self.assertEqual(len(died), 1, (stage, pid, [e["name"] for e in instants]))
            self.assertTrue("killed" in died[0]["name"] or "SIGKILL" in died[0]["name"], died)
        self.assertEqual(t["otherData"]["deaths"], len(killed))
        self.assertGreaterEqual(sum(e["cat"] == "ready" for e in instants), len(killed) - 1)

    def test_several_instances_share_the_frames(self):
        self.start_run(pipeline="workers.toml")
        trace = self.start_trace("--frames", "60")
        out, err = trace.communicate(timeout=40)
        self.assertEqual((trace.returncode, err), (0, ""), out)
        self.check_every_frame(self.load())
        names = {e["args"]["name"] for e in self.load()["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertTrue(any(n.startswith("fragment.2 lane") for n in names), names)

    def test_a_stage_with_two_outputs_has_one_bar_a_frame_and_a_counter_for_each_ring(self):
        path = os.path.join(self.folder, "fork.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(FORK)
        self.start_run(pipeline=path, keys=())
        trace = self.start_trace("--frames", "60")
        out, err = trace.communicate(timeout=30)
        self.assertEqual((trace.returncode, err), (0, ""), out)
        t, stages = self.load(), ["numbers", "fork", "join"]
        bars = self.check_every_frame(t, stages)
        self.check_flows(t, bars, stages)
        self.check_nesting(t)
        counters = {e["name"] for e in t["traceEvents"] if e["ph"] == "C" and e["pid"] == 1}
        self.assertEqual(counters, {"output ring of numbers", "output ring of fork", "output ring of fork.square"})

    def test_a_pipeline_that_ends_during_a_trace_leaves_a_trace_that_states_it(self):
        run = self.start_run()
        trace = self.start_trace("--seconds", "30")
        self.wait_tracing()
        run.send_signal(signal.SIGINT)
        out, err = trace.communicate(timeout=30)
        self.assertEqual(trace.returncode, 0, err)
        self.assertRegex(err, r"note: the pipeline ended after [0-9.]+ s: the trace covers the time until then")
        t = self.load()
        self.check_every_frame(t)
        self.assertIn("the pipeline ended", t["otherData"]["ending"])
        run.wait(20)
        self.assertEqual([n for n in os.listdir("/dev/shm") if t["otherData"]["run_id"] in n], [], "nothing is abandoned")

    def check_frames_after(self, frame_number, err):
        """The trace continued: it has complete frames long after that one, and no end."""
        self.assertNotIn("the pipeline ended", err)
        self.assertGreater(self.load()["otherData"]["last_ring_sequence"], frame_number + 100)
        self.assertEqual(self.load()["otherData"]["ending"], "")

    def test_a_run_with_rebuilt_memory_stays_traced_in_its_new_control_block(self):
        self.start_run()
        trace = self.start_trace("--seconds", "6")
        self.wait_tracing()
        self.assertTrue(self.ask({"type": "rebuild"})["ok"])
        until = time.monotonic() + 10
        while self.ask({"type": "ps"})["pipeline"]["state"] != "running":
            self.assertLess(time.monotonic(), until, "the run has not begun again")
            time.sleep(0.02)
        then = self.ask({"type": "ps"})["pipeline"]["frames"]
        out, err = trace.communicate(timeout=40)
        self.assertEqual(trace.returncode, 0, err)
        self.assertRegex(err, r"note: demo restarts with new memory after [0-9.]+ s")
        self.check_frames_after(then, err)

    def test_a_run_that_loses_its_supervisor_is_traced_on_with_the_next_one(self):
        run = self.start_run("--set", "supervisor_grace_s=60")
        trace = self.start_trace("--seconds", "8")
        self.wait_tracing()
        run.kill()
        run.wait()
        time.sleep(0.5)
        next_one = self.start_run("--set", "supervisor_grace_s=60")
        then = self.ask({"type": "ps"})["pipeline"]["frames"]
        out, err = trace.communicate(timeout=40)
        self.assertEqual(trace.returncode, 0, err)
        self.assertRegex(err, rf"note: no supervisor, 4 stages continue \(pid {run.pid}\) after [0-9.]+ s")
        self.assertRegex(err, rf"note: a supervisor has taken over demo \(pid {next_one.pid}\) after [0-9.]+ s")
        self.check_frames_after(then, err)

    def test_ctrl_c_ends_the_trace_and_writes_it(self):
        self.start_run()
        trace = self.start_trace("--seconds", "30")
        self.wait_tracing()
        trace.send_signal(signal.SIGINT)
        out, err = trace.communicate(timeout=20)
        self.assertEqual(trace.returncode, 0, err)
        self.assertIn("note: interrupted after", err)
        self.check_every_frame(self.load())

    def test_a_killed_tracer_leaves_no_stamping(self):
        self.start_run()
        trace = self.start_trace("--seconds", "30")
        time.sleep(1)
        trace.kill()
        trace.wait()
        time.sleep(3.5)
        again = self.start_trace("--frames", "60")
        out, err = again.communicate(timeout=20)
        self.assertEqual((again.returncode, err), (0, ""), out)
        t = self.load()
        self.check_every_frame(t)
        first = min(e["ts"] for e in t["traceEvents"] if e["ph"] == "X")
        self.assertGreaterEqual(first, 0, "nothing older than the trace is in it")

    def test_refusals_name_the_remedy(self):
        none = self.carousel("trace", self.file)
        self.assertEqual(none.returncode, 2)
        self.assertIn("no pipeline is running; start one with `carousel run FILE`", none.stderr)
        self.assertFalse(os.path.exists(self.file))
        self.start_run()
        where = os.path.join(self.folder, "no", "such", "trace.json")
        no_folder = self.carousel("trace", where)
        self.assertEqual(no_folder.returncode, 75, no_folder.stderr)
        self.assertIn(f"{where} can't be written: No such file or directory", no_folder.stderr)
        other = self.carousel("trace", self.file, "-p", "demp")
        self.assertEqual(other.returncode, 2)
        self.assertIn('no pipeline "demp" is running', other.stderr)
        bad = self.carousel("trace", self.file, "--seconds", "soon")
        self.assertEqual(bad.returncode, 2, bad.stderr)
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".part")], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
