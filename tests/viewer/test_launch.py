"""`./pipelines/launch` with a display: the real script and programs in a separate tree; only cmake and ninja are stand-ins.
Usage: test_launch.py FOLDER_OF_PROGRAMS ROOT"""
import os
import shutil
import signal
import sys
import unittest

from window_case import WindowCase, missing_tools, wait_for
from processes import is_alive, skip  # window_case has made it findable

WindowCase.programs, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SMALL = ("--device", "cpu", "--size", "320x180", "--set", "geometry.triangles=2000", "--fps", "30", "--out", "", "--report", "report.json")


class Launch(WindowCase):
    def setUp(self):
        super().setUp()
        tree, stand_ins = os.path.join(self.folder, "tree"), os.path.join(self.folder, "bin")
        shutil.copytree(os.path.join(ROOT, "pipelines"), os.path.join(tree, "pipelines"))
        shutil.copy(os.path.join(ROOT, "CMakePresets.json"), tree)
        os.makedirs(os.path.join(tree, "build", "release"))
        for name in os.listdir(self.programs):
            if name.startswith("carousel") and os.access(os.path.join(self.programs, name), os.X_OK):
                os.symlink(os.path.join(self.programs, name), os.path.join(tree, "build", "release", name))
        os.mkdir(stand_ins)
        for name, body in (("cmake", "exit 0"), ("ninja", "echo 'ninja: no work to do.'")):
            with open(os.path.join(stand_ins, name), "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\n{body}\n")
            os.chmod(f.name, 0o755)
        self.environment.update(CAROUSEL_SKIP_PACKAGES="1", PATH=stand_ins + ":" + os.environ["PATH"])
        self.script = os.path.join(tree, "pipelines", "launch")

    def launch(self, *arguments):
        return self.start(self.script, *arguments, start_new_session=True)

    @staticmethod
    def viewer_of(run):
        """The viewer that the script has started, or None."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"carousel-viewer") and str(run.pid).encode() in words and is_alive(pid):
                return int(pid)
        return None

    def output(self):
        with open(self.log_of(self.script), encoding="utf-8") as f:
            return f.read()

    def gone(self, viewer):
        wait_for("the viewer's end", lambda: not is_alive(viewer), 15)

    def test_the_window_opens_and_closing_it_ends_the_run(self):
        self.start_display()
        run = self.launch(*SMALL)
        wait_for("the window", lambda: self.window("^Carousel - demo"))
        viewer = self.viewer_of(run)
        self.wait_running()
        self.press("ctrl+q")
        self.assertEqual(run.wait(60), 0, self.output())
        self.gone(viewer)
        self.check_report()

    def test_with_a_window_no_pictures_are_written_and_with_keep_the_newest(self):
        self.start_display()
        self.environment["CAROUSEL_LOG"] = "info"
        without = [w for k, w in enumerate(SMALL) if w != "--out" and SMALL[k - 1] != "--out"]
        run = self.launch(*without, "--frames", "60")
        self.assertEqual(run.wait(60), 0, self.output())
        self.assertEqual(self.check_report()["frames"], 60)
        self.assertIn("no pictures are written", self.output())
        self.assertEqual([f for _, _, files in os.walk(self.folder) for f in files if f.startswith("frame_")], [])
        run = self.launch(*without, "--frames", "60", "--keep", "7")
        self.assertEqual(run.wait(60), 0, self.output())
        self.assertEqual(sorted(f for _, _, files in os.walk(self.folder) for f in files if f.startswith("frame_")),
                         [f"frame_{n:05d}.png" for n in range(53, 60)])

    def test_ctrl_c_ends_both(self):
        self.start_display()
        run = self.launch(*SMALL)
        wait_for("the window", lambda: self.window("^Carousel - demo"))
        viewer = self.viewer_of(run)
        self.wait_running()
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        self.assertIn(run.wait(60), (0, 130), self.output())
        self.gone(viewer)
        self.check_report()

    def test_the_end_of_the_run_ends_the_window_and_a_killed_window_ends_nothing(self):
        self.start_display()
        run = self.launch(*SMALL, "--frames", "150")
        wait_for("the window", lambda: self.window("^Carousel - demo"))
        viewer = self.viewer_of(run)
        self.assertEqual(run.wait(60), 0, self.output())
        self.gone(viewer)
        self.assertEqual(self.check_report()["frames"], 150)
        run = self.launch(*SMALL, "--frames", "150")
        os.kill(wait_for("the viewer", lambda: self.viewer_of(run)), signal.SIGKILL)
        self.assertEqual(run.wait(60), 0, self.output())
        self.assertEqual(self.check_report()["frames"], 150)

    def test_a_viewer_that_cannot_open_reports_it_and_the_run_continues(self):
        self.start_display()
        self.environment["MESA_GL_VERSION_OVERRIDE"] = "2.1"
        run = self.launch(*SMALL, "--frames", "100")
        self.assertEqual(run.wait(60), 0, self.output())
        self.assertIn("no window with OpenGL 3.3", self.output())
        self.assertIn("The pipeline continues without it.", self.output())
        self.assertEqual(self.check_report()["frames"], 100)

    def test_a_pipeline_that_does_not_start_leaves_no_viewer(self):
        self.start_display()
        run = self.launch("nowhere.toml")
        self.assertEqual(run.wait(60), 2, self.output())
        self.assertIn("nowhere.toml: the pipeline file does not exist", self.output())
        wait_for("no viewer", lambda: self.viewer_of(run) is None, 15)

    def test_without_a_display_there_is_no_viewer_and_an_end(self):
        self.environment.pop("DISPLAY", None)
        run = self.launch(*SMALL, "--fps", "0")
        self.assertEqual(run.wait(60), 0, self.output())
        self.assertIn("No display here", self.output())
        self.assertEqual(self.check_report()["frames"], 300)


if __name__ == "__main__":
    if missing_tools():
        skip("not installed: " + ", ".join(missing_tools()))
    unittest.main(argv=sys.argv[:1], verbosity=2)
