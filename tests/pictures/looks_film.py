"""Makes a film of pipelines/looks.toml in which each stage is killed in turn, in real time: on the left the pictures, on the right their
difference to those of an undisturbed run, times 8, below the processes. Every picture of the difference is black, otherwise the script
fails.

Usage: looks_film.py FOLDER_OF_PROGRAMS PIPELINES OUT.webp|OUT.mp4 [--size 448x252] [--fps 8]; takes ffmpeg with libass."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from looks import STAGES, compared  # noqa: E402
from processes import end_process, wait_for  # noqa: E402

VICTIMS = [*STAGES, "display-post"]
EACH_S, BEFORE_S, SHOWN_S = 1.3, 1.0, 0.5   # between two kills; before the first; how long a kill is marked
PANEL = 84   # pixels of height below the pictures
WHITE, GREY, RED, GREEN = "&HE8E8E8&", "&H909090&", "&H5050FF&", "&H80D080&"
ENCODERS = {".webp": ["-c:v", "libwebp_anim", "-quality", "55", "-compression_level", "6", "-loop", "0"],
            ".mp4": ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20"]}


class Film:
    def __init__(self, arguments, folder):
        self.a, self.folder = arguments, folder
        self.width, self.height = (int(n) for n in arguments.size.split("x"))
        self.carousel = os.path.join(os.path.abspath(arguments.programs), "carousel")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        self.common = ["--device", "cpu", "--size", arguments.size, "--frames", str(arguments.frames), "--no-color"]
        self.ticks = []   # (time, number of the picture, {stage: (pid, restarts)})
        self.kills = {}   # stage: time

    def start(self, file, *options):
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8") as log:
            return subprocess.Popen([self.carousel, "run", file, *self.common, *options], env=self.environment, cwd=self.folder, stderr=log)

    def end(self, run):
        if run.wait(600) != 0:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as f:
                sys.exit(f"the run ended with exit code {run.returncode}:\n{f.read()[-3000:]}")

    def stages(self):
        out = subprocess.run([self.carousel, "ps", "--json"], env=self.environment, capture_output=True, timeout=20, check=False).stdout
        found = json.loads(out or "{}").get("stages", [])
        return {s["name"]: (s.get("pid"), s.get("restarts", 0)) for s in found}

    def picture(self, ring, number):
        return os.path.join(self.folder, "out", f"{ring}_{number:05d}.png")

    def newest(self, number):
        while all(os.path.exists(self.picture(ring, number + 1)) for ring in ("frame", "post")):
            number += 1
        return number

    def watch(self, run):
        """Polls the run every 1 / fps seconds, and kills a stage every EACH_S seconds."""
        number, began = -1, None
        while run.poll() is None:
            number = self.newest(number)
            if number >= 0:
                now = time.monotonic()
                began = began or now
                due = int((now - began - BEFORE_S) / EACH_S) if now - began >= BEFORE_S else -1
                if 0 <= due < len(VICTIMS) and due == len(self.kills):
                    subprocess.run([self.carousel, "kill", VICTIMS[due]], env=self.environment, capture_output=True, timeout=20, check=True)
                    self.kills[VICTIMS[due]] = now - began
                self.ticks.append((now - began, number, self.stages()))
                if now - began > BEFORE_S + EACH_S * (len(VICTIMS) + 1):
                    break
                time.sleep(max(0.0, len(self.ticks) / self.a.fps - (time.monotonic() - began)))
            else:
                time.sleep(0.02)

    def subtitles(self):
        """The table of processes, one line of text per tick and stage, in ASS."""
        def stamp(seconds):
            return f"{int(seconds // 3600)}:{int(seconds // 60) % 60:02d}:{seconds % 60:05.2f}"
        width, lines, column = 2 * self.width, [], 2 * self.width // len(VICTIMS)
        known, seen = {}, {}
        for k, (now, number, stages) in enumerate(self.ticks):
            begin, end = stamp(k / self.a.fps), stamp((k + 1) / self.a.fps)
            for place, stage in enumerate(VICTIMS):
                pid = stages.get(stage, (None, 0))[0]
                killed = self.kills.get(stage)
                if pid and pid != known.get(stage):
                    seen[stage] = now if stage in known else None
                    known[stage] = pid
                down = killed is not None and 0 <= now - killed and (now - killed < SHOWN_S or (seen.get(stage) or 0) < killed)
                name, words = (RED, "SIGKILL") if down else (WHITE, f"pid {pid or '-'}")
                shade = RED if down else GREEN if killed is not None and now > killed else GREY
                x, y = column * place + column // 2, self.height
                lines.append(f"Dialogue: 0,{begin},{end},Name,,0,0,0,,{{\\an8\\pos({x},{y + 10})\\c{name}}}{stage.replace('display-post', 'display')}")
                lines.append(f"Dialogue: 0,{begin},{end},Small,,0,0,0,,{{\\an8\\pos({x},{y + 32})\\c{shade}}}{words}")
            lines.append(f"Dialogue: 0,{begin},{end},Small,,0,0,0,,{{\\an8\\pos({self.width // 2},{self.height + 58})\\c{GREY}}}"
                         f"eight processes, each killed once; frame {number}")
            lines.append(f"Dialogue: 0,{begin},{end},Small,,0,0,0,,{{\\an8\\pos({self.width + self.width // 2},{self.height + 58})\\c{GREY}}}"
                         "above: difference to a run without kills, times 8")
        style = "DejaVu Sans,{},&HFFFFFF&,&HFFFFFF&,&H0&,&H0&,{},0,0,0,100,100,0,0,1,0,0,7,0,0,0,1"
        return (f"[Script Info]\nScriptType: v4.00+\nPlayResX: {width}\nPlayResY: {self.height + PANEL}\n\n[V4+ Styles]\n"
                "Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, "
                "ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"
                f"Style: Name,{style.format(17, -1)}\nStyle: Small,{style.format(14, 0)}\n\n[Events]\n"
                "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n" + "\n".join(lines) + "\n")

    def encode(self):
        for k, (_, number, _) in enumerate(self.ticks):
            for ring in ("frame", "post"):
                os.symlink(self.picture(ring, number), os.path.join(self.folder, f"tick_{ring}_{k:05d}.png"))
        with open(os.path.join(self.folder, "table.ass"), "w", encoding="utf-8") as f:
            f.write(self.subtitles())
        sources = [word for ring in ("post", "frame") for word in ("-framerate", str(self.a.fps), "-i", f"tick_{ring}_%05d.png")]
        subprocess.run(["ffmpeg", "-y", "-loglevel", "error", *sources, "-filter_complex",
                        f"[0][1]hstack,pad=iw:ih+{PANEL}:0:0:0x101418,ass=table.ass,drawbox=x={self.width - 1}:y=0:w=2:h={self.height}:c=0x404850",
                        *ENCODERS[os.path.splitext(self.a.out)[1]], os.path.abspath(self.a.out)], cwd=self.folder, check=True, timeout=600)

    def check_black(self):
        """ffmpeg's own measure: the brightest value of all difference pictures."""
        found = subprocess.run(["ffmpeg", "-loglevel", "error", "-framerate", "1", "-i", "out/frame_%05d.png", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"],
                               cwd=self.folder, capture_output=True, check=True, timeout=600).stdout
        if len(found) != self.a.frames * self.width * self.height * 3 or any(found):
            sys.exit(f"{len(found) // (self.width * self.height * 3)} pictures of the difference; not all are black")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("pipelines")
    parser.add_argument("out")
    parser.add_argument("--size", default="448x252")
    parser.add_argument("--fps", type=float, default=8)
    a = parser.parse_args()
    if os.path.splitext(a.out)[1] not in ENCODERS:
        parser.error(f"OUT must end with {' or '.join(ENCODERS)}")
    a.frames = int((BEFORE_S + EACH_S * (len(VICTIMS) + 2)) * a.fps)
    with open(os.path.join(a.pipelines, "looks.toml"), encoding="utf-8") as f:
        text = f.read()
    with tempfile.TemporaryDirectory(prefix="carousel-looks-film-") as folder:
        film = Film(a, folder)
        calm, killed = os.path.join(folder, "calm.toml"), os.path.join(folder, "killed.toml")
        for file, content in ((calm, text), (killed, compared(text, "run.mcap", ("compare", "post")))):
            with open(file, "w", encoding="utf-8") as f:
                f.write(content)
        film.end(film.start(calm, "--out", "", "--record", "post", "--record-to", os.path.join(folder, "run.mcap")))
        report = os.path.join(folder, "report.json")
        run = film.start(killed, "--fps", str(a.fps), "--out", "display=" + os.path.join(folder, "out", "frame_%05d.png"), "--out",
                         "display-post=" + os.path.join(folder, "out", "post_%05d.png"), "--report", report)
        try:
            wait_for("all stages", lambda: all(film.stages().get(name, (None,))[0] for name in VICTIMS), 60)
            film.watch(run)
            film.end(run)
        finally:
            end_process(run)
        with open(report, encoding="utf-8") as f:
            counted = json.load(f)
        if [counted[key] for key in ("lost", "repeated", "torn")] != [0, 0, 0] or counted["restarts"] < len(VICTIMS) or len(film.kills) < len(VICTIMS):
            sys.exit(f"lost, repeated, torn: {[counted[key] for key in ('lost', 'repeated', 'torn')]}; {counted['restarts']} restarts, {len(film.kills)} kills")
        film.check_black()
        film.encode()
    print(f"{a.out}: {len(film.ticks)} pictures, {os.path.getsize(a.out)} bytes; {counted['restarts']} restarts, {counted['frames']} frames, "
          "lost, repeated, torn: 0; each difference is black")


if __name__ == "__main__":
    main()
