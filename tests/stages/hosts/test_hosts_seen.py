"""What users see of a pipeline over two hosts, on loopback: the dashboard, its programs, the window, `carousel top`.
Usage: test_hosts_seen.py FOLDER_OF_PROGRAMS [file for a picture of the dashboard]"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "viewer"))
import browser  # noqa: E402
from host_world import HOST, PORT, SINK, SOURCE, World  # noqa: E402
from processes import end_process, wait_for  # noqa: E402
from web_rig import Dashboard  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[1])
PICTURE = sys.argv[2] if len(sys.argv) > 2 else None
SIZE = 1 << 16


def has(program):
    return os.path.exists(os.path.join(PROGRAMS, program))


class Hosts(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def pair(self, *more, size=SIZE, fps=60):
        """source here, sink on b: (coordinator, remote), running."""
        file = self.world.write("chain.toml", SOURCE.format(bytes=size) + SINK.format(name="sink", of="source", bytes=size, more='host = "b"\n')
                                + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more=""))
        coordinator, remote = self.world.coordinator(file, "--fps", str(fps), *more), self.world.remote(file, "b", "--fps", str(fps))
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        wait_for("b's stages in ps", lambda: (coordinator.stage("b/sink").get("frames") or 0) > 5)
        return coordinator, remote

    def dashboard_of(self, coordinator):
        return Dashboard(*wait_for("a printed address", lambda: re.search(r"http://[\d.]+:(\d+)/\?token=([0-9a-f]{32})", coordinator.text())).groups())

    @staticmethod
    def host(dashboard):
        return next(iter(dashboard.json()["hosts"]), {"state": None, "stages": []})

    @classmethod
    def remote_stage(cls, dashboard, label):
        return next((s for s in cls.host(dashboard)["stages"] if s["label"] == label), {})

    @staticmethod
    def events(dashboard):
        return "\n".join(e["text"] for e in dashboard.json()["events"])


@unittest.skipUnless(has("carousel-web"), "no carousel-web in this build")
class Seen(Hosts):
    def test_the_page_shows_the_other_host_and_kills_there(self):
        coordinator, remote = self.pair("--http", "0")
        dashboard = self.dashboard_of(coordinator)
        b = wait_for("host b", lambda: self.remote_stage(dashboard, "b/sink").get("frames_per_second") and self.host(dashboard))
        self.assertEqual((b["name"], b["address"], b["state"]), ("b", "127.0.0.1", "running"))
        wait_for("its clock", lambda: self.host(dashboard)["clock_error_ms"])
        b = self.host(dashboard)
        self.assertLess(abs(b["clock_ahead_ms"]), b["clock_error_ms"] + 1)   # one machine, one clock
        self.assertRegex(b["text"], r"^host b \(127\.0\.0\.1\): running, its clock is [\d.]+ ms (ahead of|behind) this host's clock")
        self.assertEqual([s["label"] for s in b["stages"]], ["b/source-from-here", "b/sink"])
        self.assertEqual([s["name"] for s in dashboard.json()["stages"]], ["source", "source-to-b"])   # only this host's
        sink = self.remote_stage(dashboard, "b/sink")
        self.assertEqual((sink["pid"], sink["state"], sink["restarts"]), (remote.stage("sink")["pid"], "running", 0))
        metrics = dashboard.ask("/metrics")[1].decode()
        self.assertIn('carousel_host_up{pipeline="chain",host="b"} 1\n', metrics)
        self.assertRegex(metrics, r'carousel_host_clock_error_seconds\{pipeline="chain",host="b"\} [\d.e-]+\n')

        self.assertEqual(dashboard.act("b%2Fsink", "kill", "0" * 32)[0], 403)
        status, text = dashboard.act("b%2Fsink", "kill")   # as the dashboard's buttons send it
        self.assertEqual(status, 200, text)
        wait_for("another process", lambda: self.remote_stage(dashboard, "b/sink").get("pid") not in (None, sink["pid"]))
        wait_for("how it ended", lambda: "SIGKILL" in (self.remote_stage(dashboard, "b/sink")["last_exit"] or ""))
        self.assertRegex(self.events(dashboard), rf"b/sink \(pid {sink['pid']} there\) was replaced: .*SIGKILL")
        self.assertEqual(dashboard.act("b/sink", "stop")[0], 200)
        wait_for("paused", lambda: self.remote_stage(dashboard, "b/sink")["paused"])
        self.assertEqual(dashboard.act("b/sink", "cont")[0], 200)
        self.assertEqual(dashboard.act("c/sink", "kill")[0], 409)
        wait_for("it continues", lambda: self.remote_stage(dashboard, "b/sink")["state"] == "running")

        remote.process.send_signal(signal.SIGSTOP)   # a silent host counts as lost
        wait_for("it is lost", lambda: self.host(dashboard)["state"] == "lost", 30)
        self.assertEqual(self.remote_stage(dashboard, "b/sink")["pid"], None)
        self.assertIn("host b: lost, was running", self.events(dashboard))
        self.assertIn('carousel_host_up{pipeline="chain",host="b"} 0\n', dashboard.ask("/metrics")[1].decode())
        remote.process.send_signal(signal.SIGCONT)
        wait_for("it is back", lambda: self.host(dashboard)["state"] == "running", 30)
        self.assertIn("host b: running, was lost", self.events(dashboard))
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())

    @unittest.skipIf(browser.find() is None, "no Chromium here")
    def test_a_person_sees_both_hosts_and_kills_on_the_other_one(self):
        coordinator, remote = self.pair("--http", "0")
        dashboard = self.dashboard_of(coordinator)
        b = browser.Browser(browser.find(), 1440, 1000)
        self.addCleanup(b.close)
        b.open(f"http://127.0.0.1:{dashboard.port}/?token={dashboard.token}")
        rows = wait_for("all rows", lambda: len(r := b.value("[...document.querySelectorAll('#rows tr')].map(r => r.cells[0].textContent)")) == 5 and r)
        self.assertEqual([rows[0], rows[1], rows[3], rows[4]], ["source", "source-to-b", "b/source-from-here", "b/sink"])
        self.assertTrue(rows[2].startswith("host b (127.0.0.1): running"), rows[2])
        if PICTURE:
            time.sleep(8)
            b.screenshot(PICTURE)
        pid = remote.stage("sink")["pid"]
        b.confirm('[data-verb=kill][data-stage="b/sink"]')
        wait_for("another process", lambda: remote.stage("sink").get("pid") not in (None, pid))
        self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), True)


class Traces(Hosts):
    def traced_pair(self, fps=60):
        coordinator, remote = self.pair(fps=fps)
        wait_for("a clock", lambda: coordinator.ps()["hosts"][0].get("clock_error_ms"))
        return coordinator, remote, {name: os.path.join(self.world.folder, name + "-trace.json") for name in ("near", "b", "all")}

    def check_joined(self, path, least):
        """The trace in that file has both hosts' stages, on one clock; this many of its frames went through all."""
        with open(path, encoding="utf-8") as f:
            trace = json.load(f)
        names = {e["args"]["name"]: e["pid"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"}
        self.assertLessEqual({"source", "source-to-b", "b/source-from-here", "b/sink"}, set(names))
        at = {}
        for e in trace["traceEvents"]:
            if e["ph"] == "X" and e.get("cat") == "frame":
                at.setdefault(e["args"]["ring_sequence"], {})[e["pid"]] = (e["ts"], e["ts"] + e["dur"])
        whole = [bars for bars in at.values() if {names["source"], names["b/sink"]} <= set(bars)]
        self.assertGreaterEqual(len(whole), least)
        slack = 1e3 * (trace["otherData"]["joined"][0]["error_ms"] + 1)   # us: one machine, one clock
        for bars in whole:   # no frame is at the remote sink before its source has begun it, nor a second later
            self.assertGreater(bars[names["b/sink"]][0], bars[names["source"]][0] - slack)
            self.assertLess(bars[names["b/sink"]][0], bars[names["source"]][0] + 1e6)

    def test_traces_of_both_hosts_are_joined_by_the_offset_of_their_clocks(self):
        coordinator, remote, files = self.traced_pair()
        recording = [subprocess.Popen([self.world.carousel, "trace", files[s.name], "--here", "--seconds", "2", "-p", s.run_name],
                                      env=s.environment, stdout=subprocess.DEVNULL) for s in (coordinator, remote)]
        self.assertEqual([p.wait(60) for p in recording], [0, 0])
        done = coordinator.command("trace", files["all"], "--coordinator", files["near"], "--join", "b=" + files["b"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_joined(files["all"], 41)
        self.assertEqual(coordinator.command("trace", files["all"], "--coordinator", files["b"], "--join", "c=" + files["near"]).returncode, 2)
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())

    def test_one_command_traces_all_hosts_and_leaves_no_files(self):
        coordinator, remote, files = self.traced_pair(fps=240)   # a remote part of several messages
        done = coordinator.command("trace", files["all"], "--seconds", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check_joined(files["all"], 41)
        done = coordinator.command("trace", files["near"], "--frames", "5")   # a short one, too
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check_joined(files["near"], 1)
        done = coordinator.command("trace", files["near"], "--here", "--seconds", "0.5")
        with open(files["near"], encoding="utf-8") as f:
            self.assertNotIn("joined", json.load(f)["otherData"])

        remote.process.send_signal(signal.SIGSTOP)   # an absent host is left out, and reported
        asked = coordinator.command("stop", "b/sink")   # in flight when the loss is noticed
        self.assertEqual((asked.returncode, asked.stderr.count("host b was lost before it answered: it may still execute the request")), (1, 1), asked.stderr)
        wait_for("it is lost", lambda: coordinator.ps()["hosts"][0]["state"] == "lost", 30)
        done = coordinator.command("trace", files["near"], "--seconds", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "^warning: the trace of host b is missing: host b can't be queried now: ")
        remote.process.send_signal(signal.SIGCONT)
        wait_for("it is back", lambda: coordinator.ps()["hosts"][0]["state"] == "running", 30)
        coordinator.command("cont", "b/sink")

        recorder = subprocess.Popen([self.world.carousel, "trace", files["b"], "--seconds", "60", "-p", coordinator.run_name], env=coordinator.environment,
                                    stdout=subprocess.DEVNULL)
        self.addCleanup(end_process, recorder)
        there = os.path.join(remote.runtime, "carousel", remote.run_name, "traces")
        wait_for("b records", lambda: os.listdir(there))
        recorder.kill()   # b's part is ended and removed when it has not been polled for 15 s
        wait_for("nothing is left on b", lambda: not os.listdir(there), 60)

        recorder = subprocess.Popen([self.world.carousel, "trace", files["b"], "--seconds", "4", "-p", coordinator.run_name], env=coordinator.environment,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end_process, recorder)
        wait_for("b records", lambda: os.listdir(there))
        remote.supervisor_is_killed()   # its recorder ends with it, and the next one has no data of it
        wait_for("no recorder is left", lambda: subprocess.run(["pgrep", "-f", there], stdout=subprocess.DEVNULL, check=False).returncode == 1)
        self.assertRegex(recorder.communicate(timeout=30)[1], "the trace of host b is missing: (trace: trace \\d+ does not exist here|host b can't be queried)")
        self.assertEqual(recorder.returncode, 0)
        wait_for("b is back", lambda: coordinator.ps()["hosts"][0]["state"] == "running", 30)
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.assertFalse(os.path.exists(there))


@unittest.skipUnless(has("carousel-viewer"), "no carousel-viewer in this build")
class Window(Hosts):
    def test_the_window_and_top_have_rows_of_the_other_host(self):
        coordinator, remote = self.pair()
        seen = os.path.join(self.world.folder, "widgets.json")
        with open(os.path.join(self.world.folder, "viewer.log"), "wb") as log:
            viewer = subprocess.Popen([os.path.join(PROGRAMS, "carousel-viewer"), "--null", "-p", "chain", "--dump-widgets", seen, "--settings",
                                       os.path.join(self.world.folder, "viewer.ini"), "--size", "1920x1080"],
                                      env=coordinator.environment, stdout=log, stderr=log)
        self.addCleanup(end_process, viewer)

        def widgets():
            try:
                with open(seen, encoding="utf-8") as f:
                    return json.load(f)["widgets"]
            except (OSError, ValueError):
                return {}
        wait_for("b's rows", lambda: {"stages.host.b", "stages.row.b/sink", "stages.kill.b/source-from-here"} <= set(widgets()))
        top = coordinator.command("top", "--once").stdout
        self.assertRegex(top, r"\nb/sink +\d+ +running")
        self.assertRegex(top, r"\nhost b \(127\.0\.0\.1\): running")
        self.assertIsNone(viewer.poll())
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
