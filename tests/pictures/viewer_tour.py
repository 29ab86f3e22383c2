"""Makes viewer-tour.png: the viewer next to the demo on the CPU, from a fault to its repair, in four pictures.

Usage: viewer_tour.py FOLDER_OF_PROGRAMS PIPELINES OUT.png; takes Xvfb and ffmpeg.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

PROGRAMS, PIPELINES, OUT = (os.path.abspath(word) for word in sys.argv[1:4])
CAROUSEL, SIZE = os.path.join(PROGRAMS, "carousel"), "1280x720"
JOIN = ("[0]scale=960:540[a];[1]scale=960:540[b];[2]scale=960:540[c];[3]scale=960:540[d];"
        "[a][b]hstack[x];[c][d]hstack[y];[x][y]vstack")


def main():
    with tempfile.TemporaryDirectory(prefix="carousel-tour-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder, "LIBGL_ALWAYS_SOFTWARE": "1"}
        read, write = os.pipe()
        display = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", SIZE + "x24", "-nolisten", "tcp", "-noreset"],
                                   pass_fds=(write,))
        environment["DISPLAY"] = ":" + os.read(read, 16).decode().strip()
        run = subprocess.Popen([CAROUSEL, "run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu", "--size", "640x360", "--fps", "30",
                                "--out", "", "--set", "geometry.triangles=30000"], env=environment, cwd=folder)
        viewer = None
        try:
            while True:
                time.sleep(0.2)
                output = subprocess.run([CAROUSEL, "ps", "--json"], env=environment, capture_output=True, text=True, check=False).stdout
                stages = json.loads(output).get("stages", []) if output.startswith("{") else []
                if stages and all(s["frames"] > 30 for s in stages):
                    break
            viewer = subprocess.Popen([os.path.join(PROGRAMS, "carousel-viewer"), "--size", SIZE], env=environment, cwd=folder)
            time.sleep(14)

            def shot(number):
                subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-f", "x11grab", "-video_size", SIZE, "-i", environment["DISPLAY"],
                                "-frames:v", "1", os.path.join(folder, f"{number}.png")], env=environment, check=True)

            shot(1)
            began = time.monotonic()
            subprocess.run([CAROUSEL, "inject", "fragment", "--fault", "hang"], env=environment, check=True)
            for number, second in ((2, 1.5), (3, 2.6), (4, 11)):
                time.sleep(max(0.0, began + second - time.monotonic()))
                shot(number)
            pictures = [word for n in range(1, 5) for word in ("-i", os.path.join(folder, f"{n}.png"))]
            subprocess.run(["ffmpeg", "-y", "-loglevel", "error", *pictures, "-filter_complex", JOIN, OUT], check=True)
        finally:
            for process in (viewer, run):
                if process:
                    process.terminate()
                    process.wait(20)
            display.kill()
            display.wait()


main()
