"""The common parts of the tests with a real window: a virtual display, a pipeline on the CPU, a viewer, mouse
and keyboard."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, wait_for  # noqa: E402

NEEDED = ("Xvfb", "xdotool")


def missing_tools():
    return [tool for tool in NEEDED if shutil.which(tool) is None]


class WindowCase(unittest.TestCase):
    programs = pipelines = pictures = None   # set by the program that runs the tests

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-window-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "XDG_CONFIG_HOME": os.path.join(self.folder, "config"),
                            "LIBGL_ALWAYS_SOFTWARE": "1", "CAROUSEL_LOG": "warning"}
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.widgets_file = os.path.join(self.folder, "widgets.json")

    def start(self, *command, **options):
        log = open(self.log_of(command[0]), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=log, stderr=log, **options)
        self.addCleanup(end_process, process)
        return process

    def log_of(self, program):
        return os.path.join(self.folder, os.path.basename(program) + ".log")

    def start_display(self):
        read, write = os.pipe()
        # -noreset: otherwise it would restart when its last client leaves, and refuse a client that connects at that moment
        self.start("Xvfb", "-displayfd", str(write), "-screen", "0", "1920x1080x24", "-nolisten", "tcp", "-noreset", pass_fds=(write,))
        os.close(write)
        number = b""
        while not number.endswith(b"\n"):
            part = os.read(read, 16)
            self.assertTrue(part, "Xvfb ended before it had a display")
            number += part
        os.close(read)
        self.environment["DISPLAY"] = ":" + number.decode().strip()

    def start_run(self, *more, wait=True):
        run = self.start(os.path.join(self.programs, "carousel"), "run", os.path.join(self.pipelines, "demo.toml"), "--device", "cpu",
                         "--size", "320x180", "--set", "geometry.triangles=2000", "--fps", "30", "--out", "", "--no-color",
                         "--report", os.path.join(self.folder, "report.json"), *more)
        if wait:
            self.wait_running()
        return run

    def wait_running(self):
        wait_for("the pipeline runs", lambda: all(s["state"] == "running" and s["frames"] > 5 for s in self.stages()) and self.stages())

    def start_viewer(self, *options):
        return self.start(os.path.join(self.programs, "carousel-viewer"), "--dump-widgets", self.widgets_file, "--size", "1920x1080", *options)

    def stages(self):
        out = subprocess.run([os.path.join(self.programs, "carousel"), "ps", "--json"], env=self.environment, capture_output=True, timeout=20)
        try:
            return json.loads(out.stdout)["stages"]
        except (ValueError, KeyError):
            return []

    def stage(self, name):
        return next((s for s in self.stages() if s["name"] == name), {})

    def pid_of(self, stage):
        s = self.stage(stage)
        return s.get("pid") if s.get("state") == "running" else None

    def seen(self):
        try:
            with open(self.widgets_file, encoding="utf-8") as f:
                return json.load(f)
        except (OSError, ValueError):
            return {"widgets": {}, "ring_sequence": 0, "drawn": 0, "notice": None}

    def frames_continue(self, count=10):
        begin = self.seen()["ring_sequence"]
        wait_for("new frames in the window", lambda: self.seen()["ring_sequence"] > begin + count)

    def xdotool(self, *arguments):
        subprocess.run(["xdotool", *map(str, arguments)], env=self.environment, check=True, timeout=20)

    def window(self, name):
        found = subprocess.run(["xdotool", "search", "--name", name], env=self.environment, capture_output=True, text=True, timeout=20).stdout.split()
        return found[-1] if found else None

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
        if self.pictures and shutil.which("import"):
            subprocess.run(["import", "-window", "root", os.path.join(self.pictures, name)], env=self.environment, check=True, timeout=30)

    def check_report(self):
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        for word in ("lost", "repeated", "torn"):
            self.assertEqual(report[word], 0, word)
        return report
