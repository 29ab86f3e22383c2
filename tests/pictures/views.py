"""Makes viewer.png, viewer-crash.png and web.png: the viewer next to the demo on the CPU, the same after a hang, an abort and two
kills, and the web UI of the same run while fragment is down.

Usage: views.py FOLDER_OF_PROGRAMS PIPELINES FOLDER_OF_PICTURES; takes Chromium.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("viewer", "support"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import browser  # noqa: E402
from processes import end_process, wait_for  # noqa: E402

PROGRAMS, PIPELINES, OUT = (os.path.abspath(word) for word in sys.argv[1:4])
CAROUSEL = os.path.join(PROGRAMS, "carousel")
WATCHED_S, PAUSE_S = 40, 5   # the plots have as much to show


def main():
    with tempfile.TemporaryDirectory(prefix="carousel-views-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder, "LIBGL_ALWAYS_SOFTWARE": "1"}
        log = os.path.join(folder, "log")
        with open(log, "wb") as out:
            run = subprocess.Popen([CAROUSEL, "run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu", "--size", "1280x720", "--fps", "30",
                                    "--out", "", "--set", "geometry.triangles=30000", "--http", "0"], env=environment, cwd=folder,
                                   stdout=out, stderr=out)
        page = watched = None

        def address():
            with open(log, encoding="utf-8") as f:
                found = re.search(r"http://[\d.]+:\d+/\?token=[0-9a-f]{32}", f.read())
            return found and found[0]

        def running():
            output = subprocess.run([CAROUSEL, "ps", "--json"], env=environment, capture_output=True, text=True, check=False).stdout
            stages = json.loads(output).get("stages", []) if output.startswith("{") else []
            return stages and all(s["frames"] > 30 for s in stages)

        def act(*words):
            subprocess.run([CAROUSEL, *words], env=environment, check=True, timeout=30)
            time.sleep(PAUSE_S)

        def viewer(seconds, name):
            return subprocess.Popen([os.path.join(PROGRAMS, "carousel-viewer"), "--offscreen", "--size", "1920x1080", "--seconds", str(seconds),
                                     "--screenshot", os.path.join(OUT, name)], env=environment)

        try:
            wait_for("the run", running)
            page = browser.Browser(browser.find(), 1440, 1250)
            page.open(address())
            watched = viewer(WATCHED_S, "viewer.png")
            watched.wait(WATCHED_S + 60)
            watched = viewer(WATCHED_S, "viewer-crash.png")
            time.sleep(WATCHED_S - 3 * PAUSE_S - 4)   # the last kill is in the banner
            act("inject", "fragment", "--fault", "hang")
            act("inject", "display", "--fault", "abort")
            act("kill", "geometry")
            act("kill", "vertex")
            watched.wait(WATCHED_S + 60)
            act("down", "fragment")
            page.screenshot(os.path.join(OUT, "web.png"))
        finally:
            if page:
                page.close()
            for process in filter(None, (watched, run)):
                end_process(process)


main()
