"""A read-only window, the picture of a slot and the search in the events: a real pipeline on the CPU, a real window on a virtual
display. Usage: test_window_controls.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [folder for pictures]"""
import json
import os
import re
import subprocess
import sys
import unittest

from window_case import WindowCase, missing_tools, wait_for
from processes import skip  # window_case has made it findable

PROGRAMS = WindowCase.programs = os.path.abspath(sys.argv[1])
WindowCase.pipelines = os.path.abspath(sys.argv[2])
WindowCase.pictures = sys.argv[3] if len(sys.argv) > 3 else None
APART = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh", "-c",
         'for d in "$XDG_RUNTIME_DIR" /dev/shm; do mount --bind "$d" "$d" && mount -o remount,bind,ro "$d" || exit 77; done; '
         'mount -t tmpfs tmpfs /mnt && exec "$@"', "sh"]


class Controls(WindowCase):
    def test_a_read_only_window_shows_the_run_and_changes_nothing(self):
        self.start_display()
        self.start_run()
        viewer = self.start_viewer("--read-only")
        wait_for("frames in the window", lambda: self.seen()["ring_sequence"] > 0)
        before = {s["name"]: s["pid"] for s in self.stages()}
        for widget in ("stages.row.vertex", "stages.kill.fragment", "stages.stop.vertex", "stages.restart.vertex", "scene.reset"):
            self.click(widget)
        for key in ("ctrl+k", "ctrl+r", "ctrl+s", "ctrl+h", "ctrl+x", "m", "w", "o"):
            self.press(key)
        self.picture("read-only.png")
        self.frames_continue(40)
        self.assertEqual({s["name"]: s["pid"] for s in self.stages()}, before)
        self.assertEqual([s["state"] for s in self.stages()], ["running"] * 4)
        self.press("ctrl+q")
        self.assertEqual(viewer.wait(20), 0)
        out = subprocess.run([os.path.join(PROGRAMS, "carousel-viewer"), "--null", "--read-only", "--end-run"], env=self.environment,
                             capture_output=True, timeout=30, text=True)
        self.assertEqual(out.returncode, 2, out.stderr)   # the end of the run would be a command

    def test_the_picture_of_a_slot_and_the_search_in_the_events(self):
        self.start_display()
        self.start_run()
        self.start_viewer()
        wait_for("frames in the window", lambda: self.seen()["ring_sequence"] > 0)
        seen = set()
        for slot in range(4):   # slots of lower numbers are used most
            self.click(f"rings.slot.fragment.{slot}")
            wait_for("the slot's text", lambda: "slot.text" in self.seen()["widgets"])
            self.frames_drawn(10)
            seen.update(self.seen()["widgets"])
        self.picture("slot.png")
        self.assertIn("slot.picture", seen)
        self.press("Escape")
        wait_for("no slot", lambda: "slot.window" not in self.seen()["widgets"])
        self.press("ctrl+f")
        self.frames_drawn(6)
        self.xdotool("type", "WATCHING demo")
        wait_for("the events that were found", lambda: any(re.fullmatch(r"events\.count\.1 of \d+", n) for n in self.seen()["widgets"]))
        self.picture("search.png")
        self.xdotool("type", "zzz")
        wait_for("no event", lambda: "events.none" in self.seen()["widgets"])
        self.press("Escape")
        wait_for("all events", lambda: "events.none" not in self.seen()["widgets"])
        self.press("slash")   # the character itself is not typed
        self.frames_drawn(6)
        self.xdotool("type", "watching")
        wait_for("the same events", lambda: any(re.fullmatch(r"events\.count\.1 of \d+", n) for n in self.seen()["widgets"]))
        self.frames_continue()

    def test_a_read_only_window_works_where_it_may_not_write(self):
        if subprocess.run([*APART, "true"], env=self.environment, capture_output=True, check=False).returncode != 0:
            self.skipTest("no read-only mount can be made here (unshare)")
        self.assertNotEqual(subprocess.run([*APART, "touch", "/dev/shm/written"], env=self.environment, capture_output=True, check=False).returncode, 0)
        self.start_run()
        seen = ('carousel-viewer --null --read-only --seconds 4 --size 1920x1080 --settings /mnt/viewer.ini --dump-widgets /mnt/widgets.json '
                '&& cat /mnt/widgets.json')
        out = subprocess.run([*APART, "sh", "-c", seen], env={**self.environment, "PATH": PROGRAMS + ":" + os.environ["PATH"]},
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(out.returncode, 0, out.stderr)
        seen = json.loads(out.stdout)
        self.assertIn("no pictures, because frames can't be leased here", seen["problem"])
        self.assertEqual((seen["ring_sequence"], seen["notice"]), (0, ""))
        for widget in ("stages.row.vertex", "rings.slot.fragment.0", "stages.read_only"):
            self.assertIn(widget, seen["widgets"])


if __name__ == "__main__":
    if missing_tools():
        skip("not installed: " + ", ".join(missing_tools()))
    unittest.main(argv=sys.argv[:1], verbosity=2)
