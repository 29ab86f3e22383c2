#!/usr/bin/env python3
"""The cost of a viewer for the pipeline that it watches: without one, with the picture by CUDA-GL interop, with it copied through host
memory, in turn, some rounds; one table.

  viewer_cost.py FOLDER_OF_PROGRAMS [DEVICE] [--size 1920x1080] [--seconds 6] [--rounds 3] [--offscreen] [--set KEY=VALUE ...]

DEVICE: cpu | cuda:N [auto]. Without DISPLAY an Xvfb is started where there is one (software GL: then interop is unavailable, and
the table has the cause); --offscreen draws on EGL instead, on an NVIDIA GPU where its EGL is installed. Python's own library only."""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = (("no viewer", None), ("interop", "interop"), ("copy", "copy"))


def ask(a, environment):
    out = subprocess.run([os.path.join(a.programs, "carousel"), "ps", "-p", "viewer-cost", "--json"], env=environment, capture_output=True,
                         timeout=20, check=False)
    try:
        return json.loads(out.stdout)
    except ValueError:
        return {}


def is_running(a, environment):
    stages = ask(a, environment).get("stages", [])
    return bool(stages) and all(s["state"] == "running" and s["frames"] > 0 for s in stages)


def frames_now(a, environment):
    """Delivered so far, whatever the stages' states are at the moment: one may just be coming back."""
    for _ in range(50):
        reply, now = ask(a, environment), time.monotonic()
        if "pipeline" in reply:
            return reply["pipeline"]["frames"], now
        time.sleep(0.1)
    sys.exit("the pipeline's supervisor does not answer any more")


def one(a, way, folder, environment):
    """Runs the pipeline once. Returns its frames/s over `seconds`, and the viewer's statistics or None."""
    stats = os.path.join(folder, "stats.json")
    command = [os.path.join(a.programs, "carousel"), "run", a.pipeline, "-p", "viewer-cost", "--device", a.device, "--size", a.size, "--out", "",
               "--report", os.path.join(folder, "report.json"), "--no-color"]
    for pair in a.set:
        command += ["--set", pair]
    with open(os.path.join(folder, "run.log"), "wb") as log:
        run = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        viewer = None
        try:
            end = time.monotonic() + 60
            while not is_running(a, environment):
                if run.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the pipeline does not run:\n{open(log.name, encoding='utf-8', errors='replace').read()}")
                time.sleep(0.1)
            if way is not None:
                options = [os.path.join(a.programs, "carousel-viewer"), "-p", "viewer-cost", "--path", way, "--stats", stats, "--size", "1920x1080",
                           "--settings", os.path.join(folder, "viewer.ini")]
                viewer = subprocess.Popen(options + (["--offscreen"] if a.offscreen else []), env=environment, cwd=folder, stdout=log, stderr=log)
            time.sleep(2)  # the window opens, clocks settle
            before, began = frames_now(a, environment)
            time.sleep(a.seconds)
            after, ended = frames_now(a, environment)
            if viewer is not None and viewer.poll() is not None:
                sys.exit(f"the viewer ended:\n{open(log.name, encoding='utf-8', errors='replace').read()}")
        finally:
            if viewer is not None and viewer.poll() is None:
                viewer.terminate()
                viewer.wait(20)
            if run.poll() is None:
                run.send_signal(signal.SIGINT)
                run.wait(60)
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    if run.returncode != 0 or report["lost"] or report["repeated"] or report["torn"]:
        sys.exit(f"the run ended with {run.returncode}; lost {report['lost']}, repeated {report['repeated']}, torn {report['torn']}")
    seen = None
    if way is not None:
        with open(stats, encoding="utf-8") as f:
            seen = json.load(f)
    return (after - before) / (ended - began), seen


def start_display(environment):
    read, write = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1920x1080x24", "-nolisten", "tcp", "-noreset"], pass_fds=(write,),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as f:
        environment["DISPLAY"] = ":" + f.readline().strip()
    return server


def print_table(a, results):
    base = statistics.median(results["no viewer"]["fps"])
    print(f"{a.pipeline.rsplit('/', 1)[-1]}, --device {a.device} --size {a.size}, {a.seconds:g} s a run, medians of {a.rounds}; viewer of 1920 x 1080")
    print(f"{'viewer':<12}{'pipeline':>12}{'of it':>8}{'shown':>10}{'drawn':>10}{'out of ring':>13}{'to texture':>12}{'CPU':>8}   transfer of the picture")
    print(f"{'':<12}{'frames/s':>12}{'%':>8}{'frames/s':>10}{'frames/s':>10}{'ms p50':>13}{'ms p50':>12}{'cores':>8}")
    for name, _ in WAYS:
        r = results[name]
        line = f"{name:<12}{statistics.median(r['fps']):>12.1f}{100 * statistics.median(r['fps']) / base:>8.1f}"
        seen = r["seen"]
        if seen and seen[0]["shown"] > 0:
            middle = lambda pick: statistics.median(pick(s) for s in seen)
            line += (f"{middle(lambda s: s['shown_per_second']):>10.1f}{middle(lambda s: s['drawn_per_second']):>10.1f}"
                     f"{middle(lambda s: s['take_ms']['p50']):>13.3f}{middle(lambda s: s['show_ms']['p50']):>12.3f}"
                     f"{middle(lambda s: s['cpu_share']):>8.2f}   {seen[0]['way']} ({seen[0]['window']})")
        elif seen:
            line += f"   no picture: {seen[0]['problem']}"
        print(line)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", type=os.path.abspath)
    p.add_argument("device", nargs="?", default="auto")
    p.add_argument("--pipeline", type=os.path.abspath, default=os.path.join(HERE, "..", "..", "pipelines", "demo.toml"))
    p.add_argument("--size", default="1280x720")
    p.add_argument("--seconds", type=float, default=6)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--offscreen", action="store_true")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    p.add_argument("--json", metavar="FILE", help="the single figures as well")
    a = p.parse_args()
    folder = tempfile.mkdtemp(prefix="carousel-viewer-cost-")
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
    server = None
    results = {name: {"fps": [], "seen": []} for name, _ in WAYS}
    try:
        if not a.offscreen and not os.environ.get("DISPLAY"):
            if shutil.which("Xvfb") is None:
                sys.exit("no DISPLAY, and no Xvfb to make one: --offscreen, or apt-get install xvfb")
            server = start_display(environment)
        for number in range(a.rounds):
            for name, way in WAYS:
                fps, seen = one(a, way, folder, environment)
                results[name]["fps"].append(fps)
                if seen is not None:
                    results[name]["seen"].append(seen)
                print(f"round {number + 1}, {name}: {fps:.1f} frames/s", file=sys.stderr, flush=True)
        print_table(a, results)
        if a.json:
            with open(a.json, "w", encoding="utf-8") as f:
                json.dump(results, f, indent=2)
    finally:
        if server is not None:
            server.terminate()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
