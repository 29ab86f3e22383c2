"""How a run ends: signals that are ignored at the start, runs that end before their last frame, short runs. Usage: test_ends.py FOLDER_OF_PROGRAMS
PIPELINES_FOLDER"""
import json
import re
import sys

from live import CAROUSEL, HAS_EXTRAS, PIPELINES, PROGRAMS, SMALL, Live, main, os, signal, subprocess, wait_for

DEMO = os.path.join(PIPELINES, "demo.toml")


def ignoring(*signals):
    """For a child, before it becomes another program: what `nohup` and a shell's background job do."""
    def ignore():
        for s in signals:
            signal.signal(s, signal.SIG_IGN)
    return ignore


class Ends(Live):
    def start(self, frames, *more, before=None):
        """A run with that many frames at 30 frames/s; returns when it delivers frames."""
        words = [CAROUSEL, "run", DEMO, "--name", self.name, *SMALL, "--frames", str(frames), "--report", self.report_file(), *more]
        run = subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, preexec_fn=before)
        self.addCleanup(lambda: run.poll() is None and run.kill())
        wait_for("frames", lambda: self.carousel("ps", "-p", self.name, "--json").returncode == 0 and (self.ps()["pipeline"]["frames"] or 0) > 0)
        return run

    def report_file(self):
        return os.path.join(self.folder, "report.json")

    def report(self):
        with open(self.report_file(), encoding="utf-8") as f:
            return json.load(f)

    def test_a_run_under_nohup_outlives_a_hangup_and_delivers_all_its_frames(self):
        run = self.start(60, before=ignoring(signal.SIGHUP))
        run.send_signal(signal.SIGHUP)
        output = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, output)
        self.assertEqual((self.report()["frames"], self.report()["ended_early"]), (60, None))

    def test_a_background_job_of_a_script_ignores_ctrl_c_and_heeds_down(self):
        run = self.start(3000, before=ignoring(signal.SIGINT, signal.SIGQUIT))
        run.send_signal(signal.SIGINT)
        before = self.ps()["pipeline"]["frames"]
        wait_for("frames after the signal", lambda: self.ps()["pipeline"]["frames"] > before + 10)
        self.assertEqual(self.ps()["pipeline"]["state"], "running")
        down = self.carousel("down", "-p", self.name)
        self.assertEqual(down.returncode, 0, down.stderr)
        output = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, output)
        self.assertRegex(output, r"ended early, after \d+ of 3000 frames: SIGINT")

    def test_a_run_that_ends_before_its_last_frame_reports_it_and_fails_unless_a_user_asked(self):
        for how, code in ((signal.SIGHUP, 129), (signal.SIGTERM, 143), (signal.SIGINT, 0)):
            with self.subTest(how.name):
                run = self.start(3000)
                run.send_signal(how)
                output = run.communicate(timeout=60)[1]
                self.assertEqual(run.returncode, code, output)
                self.assertRegex(output, rf"ended early, after \d+ of 3000 frames: {how.name}")
                report = self.report()
                self.assertRegex(report["ended_early"], how.name)
                self.assertEqual((report["lost"], report["exit_code"]), (0, code))

    def test_a_run_without_a_number_of_frames_ends_by_a_signal_as_it_should(self):
        run = self.start(0)
        run.send_signal(signal.SIGTERM)
        output = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, output)
        self.assertNotIn("ended early", output)

    def test_a_stage_in_python_ignores_what_it_was_started_to_ignore(self):
        file = self.write("ignoring.py", "import signal\nraise SystemExit(signal.getsignal(signal.SIGINT).name)\n")
        script = os.path.join(PROGRAMS, "python", "carousel_stage.py")
        if not os.path.exists(script):
            self.skipTest("this build has no Python module")
        for before, name in ((ignoring(signal.SIGINT), "SIG_IGN"), (None, "SIG_DFL")):
            done = subprocess.run([sys.executable, script, file], capture_output=True, text=True, timeout=60, check=False, preexec_fn=before,
                                  env={**self.environment, "PYTHONPATH": os.path.dirname(script)})
            self.assertIn(name, done.stdout + done.stderr)

    def test_seconds_end_a_run_early_on_request(self):
        done = self.carousel("run", DEMO, "--name", self.name, *SMALL, "--frames", "3000", "--seconds", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"ended early, after \d+ of 3000 frames: --seconds")

    def test_a_short_run_prints_the_time_that_its_frames_took(self):
        for _ in range(6):
            done = self.carousel("run", DEMO, "--name", self.name, "--device", "cpu", "--size", "16x16", "--out", "", "--frames", "3",
                                 "--set", "geometry.triangles=1")
            self.assertEqual(done.returncode, 0, done.stderr)
            seconds, rate = map(float, re.search(r"3 frames in ([\d.]+) s, ([\d.]+) frames/s", done.stderr).groups())
            self.assertGreater(seconds, 0)
            self.assertAlmostEqual(rate, 3 / seconds, delta=0.05 * rate + 0.1)

    def test_both_ends_of_a_range_run_or_are_refused_before_anything_starts(self):
        for key, value in (("fps", "0.0001"), ("fps", "100000"), ("frames", "1000000000000"), ("supervisor_grace_s", "0"), ("stall_timeout_ms", "0"),
                           ("frame_timeout_ms", "3600000"), ("latest_lease_ms", "3600000"), ("space_mib", "1048576"), ("size", "[1, 1]")):
            with self.subTest(key=key, value=value):
                words = ["--name", self.name, "--device", "cpu", "--size", "16x16", "--out", "", "--frames", "1", "--set", "geometry.triangles=1"]
                if key == "latest_lease_ms":  # it is less than stall_timeout_ms
                    words += ["--set", "stall_timeout_ms=0"]
                done = self.carousel("run", DEMO, *words, "--seconds", "1", "--set", f"{key}={value}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("damaged", done.stderr)
        for key, value in (("frames", "9223372036854775807"), ("frames", "1000000000001"), ("fps", "1e-10"), ("fps", "0.00009")):
            with self.subTest(key=key, value=value):
                refused = self.carousel("validate", DEMO, "--set", f"{key}={value}")
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn("expected a", refused.stderr)
        if HAS_EXTRAS:
            self.assertIn("from 0.0001 to 100000", self.carousel("explain", "fps").stdout)


if __name__ == "__main__":
    main()
