"""The viewer as a person meets it: a real pipeline on the CPU, a real window on a virtual display, a real mouse and keyboard.
Usage: test_window.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [folder for pictures]"""
import json
import os
import signal
import subprocess
import sys
import unittest

from window_case import WindowCase, end_process, missing_tools, wait_for
from processes import skip  # window_case has made it findable
from web_planes import FORKED

PROGRAMS = WindowCase.programs = os.path.abspath(sys.argv[1])
WindowCase.pipelines = os.path.abspath(sys.argv[2])
WindowCase.pictures = sys.argv[3] if len(sys.argv) > 3 else None


class Window(WindowCase):
    def test_click_kill_watch_photograph_close(self):
        self.start_display()
        run, viewer = self.start_run(), self.start_viewer()
        wait_for("frames in the window", lambda: self.seen()["ring_sequence"] > 0)
        self.frames_continue()
        self.picture("window.png")

        before = self.pid_of("fragment")
        self.click("stages.kill.fragment")
        after = wait_for("another pid of fragment", lambda: self.pid_of("fragment") not in (None, before) and self.pid_of("fragment"))
        self.assertNotEqual(before, after)
        wait_for("the banner that names who died", lambda: "image.banner" in self.seen()["widgets"])
        self.picture("crash.png")
        self.frames_continue()

        self.click("stages.row.vertex")
        wait_for("vertex is chosen", lambda: self.seen()["chosen"] == "vertex")
        before = wait_for("the pid of vertex", lambda: self.pid_of("vertex"))
        self.press("k")  # a letter without Ctrl has no effect
        self.frames_drawn(10)
        self.assertEqual(self.pid_of("vertex"), before)
        self.press("ctrl+k")  # the same by key, on the chosen stage
        wait_for("another pid of vertex", lambda: self.pid_of("vertex") not in (None, before))
        self.frames_continue()

        before = wait_for("vertex runs again", lambda: self.pid_of("vertex"))
        self.press("ctrl+x")  # a fault that it brings upon itself
        wait_for("a third pid of vertex", lambda: self.pid_of("vertex") not in (None, before))
        self.assertEqual(self.stage("vertex")["last_exit"], "exit code 3, injected")
        self.press("ctrl+g")  # refused on the CPU, with a sentence among the events
        self.frames_continue()

        self.press("F1")
        wait_for("the help", lambda: "help" in self.seen()["widgets"])
        self.press("Escape")
        wait_for("no help", lambda: "help" not in self.seen()["widgets"])
        self.press("p")
        wait_for("a picture of the window", lambda: [n for n in os.listdir(self.folder) if n.startswith("carousel-demo-") and n.endswith(".png")])

        window = self.window("^Carousel - demo")
        for size in ((1, 1), (300, 900), (1920, 1080)):
            self.xdotool("windowsize", window, *size)
            self.frames_drawn()
        self.frames_continue()
        wait_for("the layout of the large window", lambda: "panel.rings" in self.seen()["widgets"])
        self.xdotool("mousemove", 960, 540)

        self.press("ctrl+q")
        self.assertEqual(viewer.wait(20), 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "config", "carousel", "viewer.ini")))
        self.assertIsNone(run.poll(), "the pipeline continues without the viewer")

        viewer = self.start_viewer("--end-run")  # one that was started with the pipeline takes it along
        wait_for("frames in the second window", lambda: self.seen()["ring_sequence"] > 0)
        self.frames_continue()
        self.press("ctrl+q")
        self.assertEqual(viewer.wait(20), 0)
        self.assertEqual(run.wait(60), 0)
        self.check_report()

    def test_a_killed_or_stopped_viewer_harms_no_process(self):
        run = self.start_run()
        viewers = [self.start_viewer("--offscreen") for _ in range(2)]
        wait_for("frames in a window", lambda: self.seen()["ring_sequence"] > 0)
        viewers[0].send_signal(signal.SIGSTOP)
        viewers[1].send_signal(signal.SIGKILL)
        before = self.stages()[-1]["frames"]
        wait_for("frames without viewers", lambda: self.stages()[-1]["frames"] > before + 60)
        viewers[0].send_signal(signal.SIGCONT)
        self.frames_continue()
        self.assertIsNone(run.poll())
        self.assertIsNone(viewers[0].poll())

    def test_a_window_follows_its_own_run_when_its_supervisor_is_killed(self):
        grace = ("--set", "supervisor_grace_s=60")
        run = self.start_run(*grace)
        viewer = self.start_viewer("--null")
        wait_for("frames in the window", lambda: self.seen()["ring_sequence"] > 0)
        mine = self.seen()["run"]
        self.start(os.path.join(PROGRAMS, "viewer_fake_run"), "60", "64x64", "external")
        wait_for("another run", lambda: os.path.exists(os.path.join(self.folder, "carousel", "external", "run.json")))
        run.kill()
        run.wait()
        wait_for("the news", lambda: self.seen()["notice"] == "no supervisor, 4 stages continue")
        self.frames_continue()
        self.start_run(*grace, wait=False)
        wait_for("its next supervisor", lambda: self.seen()["notice"] == "")
        self.frames_continue()
        self.assertEqual(self.seen()["run"], mine)
        self.assertIsNone(viewer.poll())

    def test_the_ring_of_a_second_output_is_shown_next_to_the_first(self):
        path = os.path.join(self.folder, "planes.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(FORKED)
        self.start(os.path.join(PROGRAMS, "carousel"), "run", path, "--device", "cpu", "--size", "320x180", "--fps", "30", "--no-color")
        self.wait_running()
        self.start_viewer("--null", "--stage", "scene.slope", "--compare", "scene")
        slope, scene = wait_for("both pictures", lambda: len(self.seen().get("shown", [])) == 2 and self.seen()["shown"])
        self.assertEqual([(p["stage"], p["plane"], p["values"]) for p in (slope, scene)], [("scene.slope", "slope", True), ("scene", "color", False)])
        self.assertEqual(slope["ring_sequence"], scene["ring_sequence"])
        self.frames_continue()

    def test_an_option_of_an_earlier_version_is_answered_with_its_new_name(self):
        for program in ("carousel-viewer", "carousel-web"):
            if not os.path.exists(os.path.join(PROGRAMS, program)):
                continue   # the web UI is an extra
            out = subprocess.run([os.path.join(PROGRAMS, program), "--beside", "scene"], env=self.environment, capture_output=True, timeout=30, text=True)
            self.assertEqual(out.returncode, 2, out.stderr)
            self.assertIn('Unknown option "--beside"; did you mean "--compare"?', out.stderr)

    def test_no_display_is_a_sentence(self):
        self.environment.pop("DISPLAY", None)
        out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer")], env=self.environment, capture_output=True, timeout=30, text=True)
        self.assertEqual(out.returncode, 3)
        self.assertIn("no window", out.stderr)
        self.assertIn("DISPLAY is not set", out.stderr)

    def test_no_pipeline_within_the_time_is_a_sentence(self):
        out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer"), "--null", "--wait", "0.5"], env=self.environment,
                             capture_output=True, timeout=30, text=True)
        self.assertEqual(out.returncode, 2)
        self.assertIn("no pipeline was running within 0.5 s", out.stderr)

    def test_several_pipelines_are_named_and_one_can_be_chosen(self):
        for name in ("one", "two"):
            self.start(os.path.join(PROGRAMS, "viewer_fake_run"), "60", "64x64", name)
        wait_for("two runs", lambda: all(os.path.exists(os.path.join(self.folder, "carousel", n, "run.json")) for n in ("one", "two")))
        out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer"), "--null", "--wait", "0.5"], env=self.environment, capture_output=True,
                             timeout=30, text=True)
        self.assertEqual(out.returncode, 2)
        self.assertIn("several pipelines are running: one, two: choose one with -p NAME", out.stderr)
        viewer = self.start_viewer("--null", "-p", "two")
        wait_for("frames of the chosen one", lambda: self.seen()["ring_sequence"] > 5)
        end_process(viewer)
        self.start_display()
        os.remove(self.widgets_file)
        self.start_viewer()
        self.click("choice.one")
        wait_for("its picture", lambda: "panel.rings" in self.seen()["widgets"] and self.seen()["ring_sequence"] > 5)

    def test_bad_options_are_refused(self):
        for options in (["--size", "12"], ["--size", "0x0"], ["--scale", "9"], ["--sise", "1x1"]):
            out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer"), "--null", *options], env=self.environment, capture_output=True, timeout=30)
            self.assertEqual(out.returncode, 2, options)


    def test_a_gl_that_is_too_old_is_a_sentence(self):
        self.start_display()
        self.environment["MESA_GL_VERSION_OVERRIDE"] = "2.1"
        out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer")], env=self.environment, capture_output=True, timeout=30, text=True)
        self.assertEqual(out.returncode, 3)
        self.assertIn("no window with OpenGL 3.3", out.stderr)
        self.assertIn("LIBGL_ALWAYS_SOFTWARE=1", out.stderr)

    def test_what_a_viewer_cost_is_written_down(self):
        self.start_run()
        stats = os.path.join(self.folder, "stats.json")
        viewer = self.start_viewer("--offscreen", "--stats", stats, "--max-fps", "20", "--seconds", "3")
        self.assertEqual(viewer.wait(60), 0)
        with open(stats, encoding="utf-8") as f:
            s = json.load(f)
        self.assertGreater(s["shown"], 5)
        self.assertLess(s["drawn_per_second"], 23)
        self.assertEqual(s["way"], "plain upload (host memory)")
        self.assertEqual(s["picture"], [320, 180])
        self.assertGreater(s["take_ms"]["p99"], 0)
        self.assertGreater(s["cpu_share"], 0)

    def test_unavailable_interop_is_reported_and_the_rest_is_shown(self):
        self.start_run()
        viewer = self.start_viewer("--offscreen", "--path", "interop")
        wait_for("the stages without a picture", lambda: "stages.row.vertex" in self.seen()["widgets"])
        self.frames_drawn(20)
        self.assertEqual(self.seen()["ring_sequence"], 0)
        self.assertIn("the ring is in host memory", self.seen()["problem"])
        self.assertIsNone(viewer.poll())


if __name__ == "__main__":
    if missing_tools():
        skip("not installed: " + ", ".join(missing_tools()))
    unittest.main(argv=sys.argv[:1], verbosity=2)
