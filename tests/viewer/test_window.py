"""The viewer as a person meets it: a real pipeline on the CPU, a real window on a virtual display, a real mouse and keyboard.
Usage: test_window.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [folder for pictures]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
NEEDED = ("Xvfb", "xdotool")


def wait_for(what, condition, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds:g} s")


class Window(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-window-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "XDG_CONFIG_HOME": os.path.join(self.folder, "config"),
                            "LIBGL_ALWAYS_SOFTWARE": "1", "CAROUSEL_LOG": "warning"}
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.widgets_file = os.path.join(self.folder, "widgets.json")

    def start(self, *command, **options):
        log = open(os.path.join(self.folder, os.path.basename(command[0]) + ".log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=log, stderr=log, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start_display(self):
        read, write = os.pipe()
        self.start("Xvfb", "-displayfd", str(write), "-screen", "0", "1920x1080x24", "-nolisten", "tcp", pass_fds=(write,))
        os.close(write)
        number = b""
        while not number.endswith(b"\n"):
            part = os.read(read, 16)
            self.assertTrue(part, "Xvfb ended before it had a display")
            number += part
        os.close(read)
        self.environment["DISPLAY"] = ":" + number.decode().strip()

    def start_run(self):
        run = self.start(os.path.join(PROGRAMS, "carousel"), "run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu",
                         "--size", "320x180", "--set", "geometry.triangles=2000", "--fps", "30", "--out", "", "--no-color",
                         "--report", os.path.join(self.folder, "report.json"))
        wait_for("the pipeline runs", lambda: all(s["state"] == "running" and s["frames"] > 5 for s in self.stages()) and self.stages())
        return run

    def start_viewer(self, *options):
        return self.start(os.path.join(PROGRAMS, "carousel-viewer"), "--dump-widgets", self.widgets_file, "--size", "1920x1080", *options)

    def stages(self):
        out = subprocess.run([os.path.join(PROGRAMS, "carousel"), "ps", "--json"], env=self.environment, capture_output=True, timeout=20)
        try:
            return json.loads(out.stdout)["stages"]
        except (ValueError, KeyError):
            return []

    def pid_of(self, stage):
        return next((s["pid"] for s in self.stages() if s["name"] == stage and s["state"] == "running"), None)

    def seen(self):
        try:
            with open(self.widgets_file, encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return {"widgets": {}, "sequence": 0, "drawn": 0}

    def frames_go_on(self, count=10):
        begin = self.seen()["sequence"]
        wait_for("new frames in the window", lambda: self.seen()["sequence"] > begin + count)

    def xdotool(self, *arguments):
        subprocess.run(["xdotool", *map(str, arguments)], env=self.environment, check=True, timeout=20)

    def click(self, widget):
        x, y, width, height = wait_for(f"a widget {widget}", lambda: self.seen()["widgets"].get(widget))
        self.xdotool("mousemove", int(x + width / 2), int(y + height / 2))
        self.frames_drawn()
        self.xdotool("mousedown", 1)  # held for some drawn frames: an older ImGui has no queue of its input
        self.frames_drawn()
        self.xdotool("mouseup", 1)
        self.frames_drawn()

    def frames_drawn(self, count=4):
        begin = self.seen()["drawn"]
        wait_for("drawn frames", lambda: self.seen()["drawn"] > begin + count)

    def press(self, keys):
        self.xdotool("key", keys)

    def picture(self, name):
        if PICTURES and shutil.which("import"):
            subprocess.run(["import", "-window", "root", os.path.join(PICTURES, name)], env=self.environment, check=True, timeout=30)

    def test_click_kill_watch_photograph_close(self):
        self.start_display()
        run, viewer = self.start_run(), self.start_viewer()
        wait_for("frames in the window", lambda: self.seen()["sequence"] > 0)
        self.frames_go_on()
        self.picture("window.png")

        before = self.pid_of("fragment")
        self.click("stages.kill.fragment")
        after = wait_for("another pid of fragment", lambda: self.pid_of("fragment") not in (None, before) and self.pid_of("fragment"))
        self.assertNotEqual(before, after)
        wait_for("the banner that names who died", lambda: "image.banner" in self.seen()["widgets"])
        self.picture("crash.png")
        self.frames_go_on()

        self.click("stages.row.vertex")
        wait_for("vertex is chosen", lambda: self.seen()["chosen"] == "vertex")
        before = wait_for("the pid of vertex", lambda: self.pid_of("vertex"))
        self.press("k")  # the same by key, on the chosen stage
        wait_for("another pid of vertex", lambda: self.pid_of("vertex") not in (None, before))
        self.frames_go_on()

        self.press("F1")
        wait_for("the help", lambda: "help" in self.seen()["widgets"])
        self.press("Escape")
        wait_for("no help", lambda: "help" not in self.seen()["widgets"])
        self.press("p")
        wait_for("a picture of the window", lambda: [n for n in os.listdir(self.folder) if n.startswith("carousel-demo-") and n.endswith(".png")])

        window = subprocess.run(["xdotool", "search", "--name", "^Carousel - demo"], env=self.environment, capture_output=True, text=True,
                                timeout=20).stdout.split()[-1]
        for size in ((1, 1), (300, 900), (1920, 1080)):
            self.xdotool("windowsize", window, *size)
            self.frames_drawn()
        self.frames_go_on()
        wait_for("the layout of the large window", lambda: "panel.rings" in self.seen()["widgets"])
        self.xdotool("mousemove", 960, 540)

        self.press("ctrl+q")
        self.assertEqual(viewer.wait(20), 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "config", "carousel", "viewer.ini")))
        self.assertIsNone(run.poll(), "the pipeline goes on without the viewer")

        viewer = self.start_viewer("--end-run")  # one that was started with the pipeline takes it along
        wait_for("frames in the second window", lambda: self.seen()["sequence"] > 0)
        self.frames_go_on()
        self.press("ctrl+q")
        self.assertEqual(viewer.wait(20), 0)
        self.assertEqual(run.wait(60), 0)
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        text = json.dumps(report)
        for word in ("lost", "repeated", "torn"):
            self.assertIn(f'"{word}": 0', text)

    def test_a_viewer_that_is_killed_or_stopped_harms_nobody(self):
        run = self.start_run()
        viewers = [self.start_viewer("--offscreen") for _ in range(2)]
        wait_for("frames in a window", lambda: self.seen()["sequence"] > 0)
        viewers[0].send_signal(signal.SIGSTOP)
        viewers[1].send_signal(signal.SIGKILL)
        before = self.stages()[-1]["frames"]
        wait_for("frames without viewers", lambda: self.stages()[-1]["frames"] > before + 60)
        viewers[0].send_signal(signal.SIGCONT)
        self.frames_go_on()
        self.assertIsNone(run.poll())
        self.assertIsNone(viewers[0].poll())

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

    def test_bad_options_are_refused(self):
        for options in (["--size", "12"], ["--size", "0x0"], ["--scale", "9"], ["--sise", "1x1"]):
            out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer"), "--null", *options], env=self.environment, capture_output=True, timeout=30)
            self.assertEqual(out.returncode, 2, options)


if __name__ == "__main__":
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        print("[SKIP] not installed: " + ", ".join(missing))
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
