"""A run as a web page: a real pipeline on the CPU, real requests, real kills.
Usage: test_web.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [file for a screenshot [and one of planes]]"""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
import zlib

import browser
from web_parameters import Parameters, ParametersSeen  # noqa: F401  cases of their own, found here by unittest
from web_planes import Planes, PlanesSeen  # noqa: F401  as those
from web_rig import Rig, end_process, free_port, wait_for
from processes import skip  # web_rig has made it findable

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PICTURE = sys.argv[3] if len(sys.argv) > 3 else None
PlanesSeen.picture = sys.argv[4] if len(sys.argv) > 4 else None
STAGES = ["geometry", "vertex", "fragment", "display"]


def png_size(data):
    """Width and height of a PNG whose every chunk and every byte of pixels is as it ought to be."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, pixels, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body, crc = data[at + 8:at + 8 + length], struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
        assert zlib.crc32(kind + body) == crc, kind
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        if kind == b"IDAT":
            pixels += body
        at += 12 + length
    assert kind == b"IEND" and len(zlib.decompress(pixels)) == (size[0] * 4 + 1) * size[1]
    return size


def metrics(text):
    """{name with labels: value}; every line is a comment, or a sample of a family that was announced."""
    families, values = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line[7:].split()
            assert name not in families and kind in ("counter", "gauge", "histogram"), line
            families[name] = kind
        elif not line.startswith("# HELP "):
            m = re.fullmatch(r'([a-z_:]+)\{((?:[a-z_]+="[^"\\]*",?)*)\} (NaN|[-+0-9.e]+)', line)
            assert m, line
            assert m[1] in families or families.get(re.sub("_(bucket|sum|count)$", "", m[1])) == "histogram", line
            assert families.get(m[1]) != "counter" or m[1].endswith("_total"), line
            values[m[1] + "{" + m[2] + "}"] = float(m[3])
    return values


class Served(Rig):
    """One pipeline with its page, asked in many ways."""

    def test_the_page_names_what_limits_and_its_figures_move_while_a_stage_is_busy(self):
        _, dashboard = self.running_dashboard("--set", "display.delay_ms=40")
        for _ in range(3):   # other programs may spoil the figures of a second
            problems = self.problems_while_the_display_limits(dashboard)
            if not problems:
                break
        self.assertEqual(problems, [])

    def problems_while_the_display_limits(self, dashboard):
        """The elements of the page that differ from the expected state, with their values."""
        limit = wait_for("a name", lambda: (b := dashboard.json()["pipeline"]["bottleneck"])["kind"] == "stage" and b, 20)
        display, = [s for s in dashboard.json()["stages"] if s["name"] == "display"]
        facts = [(limit, limit["stage"] == "display" and re.search(r"^bottleneck: display \(busy (9\d|100) %\)$", limit["text"])),
                 (display, display["busy"] > 0.9 and display["wait_own"] > 0.7 and display["wait_input"] + display["wait_output"] < 0.2)]
        before, began = metrics(dashboard.ask("/metrics")[1].decode()), time.monotonic()
        time.sleep(1)
        after = metrics(dashboard.ask("/metrics")[1].decode())
        passed = time.monotonic() - began
        for figure in ("busy", "wait_own"):
            name = f'carousel_stage_{figure}_seconds_total{{pipeline="demo",stage="display"}}'
            grown = after[name] - before[name]
            facts.append((f"{name} has grown by {grown} in {passed} s", 0.5 * passed < grown < passed + 0.3))
        return [output for output, holds in facts if not holds]

    def test_what_the_page_serves(self):
        run, dashboard = self.running_dashboard()
        wait_for("rates", lambda: dashboard.json()["pipeline"]["frames_per_second"])
        # The supervisor is queried twice per second: its state may still be that of the start.
        wait_for("stages that run", lambda: all(p["state"] == "running" for x in dashboard.json()["stages"] for p in x["processes"]))
        s = dashboard.json()
        self.assertEqual((s["version"], s["phase"], s["notice"], s["may_act"], s["crash"]), (2, "running", "", False, None))
        self.assertEqual((s["pipeline"]["name"], s["pipeline"]["width"], s["pipeline"]["height"]), ("demo", 320, 180))
        self.assertEqual(s["pipeline"]["supervisor_pid"], run.pid)
        self.assertEqual([x["name"] for x in s["stages"]], STAGES)
        for stage in s["stages"]:
            one, = stage["processes"]
            self.assertEqual((one["state"], one["restarts"], one["paused"]), ("running", 0, False))
            os.kill(one["pid"], 0)
            self.assertGreater(stage["frames"], 0)
            self.assertGreater(stage["latency_p99_ms"], 0)
        self.assertEqual([r["stage"] for r in s["rings"]], STAGES[:-1])
        for ring in s["rings"]:
            self.assertGreater(len(ring["slots"]), 3)
            self.assertLessEqual({x["state"] for x in ring["slots"]}, {"free", "fill", "ready", "leased", "done", "quarantined"})
            self.assertEqual(ring["readers"][0]["kind"], "blocking")
            self.assertGreater(ring["bytes_per_second"], 0)
        self.assertTrue(any("watching demo" in e["text"] for e in s["events"]))
        self.assertEqual(dashboard.ask("/status.json", headers={"X-Carousel-Token": dashboard.token})[1].count(b'"may_act":true'), 1)

        h = wait_for("history", lambda: len(dashboard.json("/history.json")["age_s"]) > 3 and dashboard.json("/history.json"))
        self.assertEqual(h["age_s"], sorted(h["age_s"], reverse=True))
        self.assertEqual({len(x["frames_per_second"]) for x in h["stages"]}, {len(h["age_s"])})

        status, body, headers = dashboard.ask("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        before = metrics(body.decode())
        if shutil.which("promtool"):
            lint = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, timeout=30, check=False)
            self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, b""))
        frames = 'carousel_frames_total{pipeline="demo",stage="display"}'
        wait_for("a growing counter", lambda: metrics(dashboard.ask("/metrics")[1].decode())[frames] > before[frames])
        self.assertEqual(before['carousel_up{pipeline="demo"}'], 1)
        self.assertEqual(before['carousel_stage_restarts_total{pipeline="demo",stage="fragment",stage_instance="0"}'], 0)
        latency = 'carousel_stage_latency_seconds_{}{{pipeline="demo",stage="fragment"{}}}'
        self.assertGreater(before[latency.format("sum", "")], 0)
        self.assertEqual(before[latency.format("count", "")], before[latency.format("bucket", ',le="+Inf"')])
        self.assertGreater(before['carousel_ring_bytes_total{pipeline="demo",ring="fragment"}'], 0)

        status, body, headers = dashboard.ask("/snapshot.png")
        self.assertEqual((status, headers["Content-Type"]), (200, "image/png"))
        self.assertEqual(png_size(body), (320, 180))
        later = int(dashboard.ask("/snapshot.png")[2]["X-Carousel-Frame"])
        self.assertGreater(later, int(headers["X-Carousel-Frame"]))

        status, body, headers = dashboard.ask("/")
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn(dashboard.token.encode(), body)
        for external in re.findall(rb'(?:src|href)\s*=\s*"([^"]*)"', body):
            self.assertRegex(external.decode(), r"^(/|data:,)")
        self.assertEqual(dashboard.ask("/", "HEAD")[:2], (200, b""))
        self.assertEqual(dashboard.ask("/nothing")[0], 404)
        self.assertEqual(dashboard.ask("/status.json", "POST")[0], 405)
        self.assertEqual(dashboard.ask("/status.json", headers={"Host": "evil.example:80"})[0], 403)
        self.assertEqual(dashboard.ask("/status.json", headers={"X-Long": "x" * 20000})[0], 431)
        with socket.create_connection(("127.0.0.1", dashboard.port)) as s:
            s.sendall(b"\x16\x03\x01 this is no request\r\n\r\n")
            self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 400"))

    def parts(self, dashboard, count):
        """N pictures of the stream: [(frame, bytes)]."""
        with socket.create_connection(("127.0.0.1", dashboard.port), timeout=20) as s:
            s.sendall(b"GET /stream.mjpg HTTP/1.1\r\nHost: localhost\r\n\r\n")
            f = s.makefile("rb")
            heading = iter(f.readline, b"\r\n")
            boundary = re.search(rb"boundary=(\S+)", b"".join(heading))[1]
            found = []
            while len(found) < count:
                self.assertEqual(f.readline(), b"--" + boundary + b"\r\n")
                lines = dict(line.strip().split(b": ") for line in iter(f.readline, b"\r\n"))
                self.assertEqual(lines[b"Content-Type"], b"image/jpeg")
                found.append((int(lines[b"X-Carousel-Frame"]), f.read(int(lines[b"Content-Length"]))))
                self.assertEqual(f.readline(), b"\r\n")
            return found

    def test_the_stream_and_clients_that_read_nothing(self):
        run, dashboard = self.running_dashboard(size="640x360")
        found = self.parts(dashboard, 5)
        frames = [n for n, _ in found]
        self.assertEqual(frames, sorted(set(frames)))
        for _, jpeg in found:
            self.assertEqual((jpeg[:3], jpeg[-2:]), (b"\xff\xd8\xff", b"\xff\xd9"))

        wait_for("nobody looks", lambda: dashboard.json()["picture"]["watchers"] == 0)
        lazy = [socket.create_connection(("127.0.0.1", dashboard.port)) for _ in range(16)]
        for s in lazy:
            self.addCleanup(s.close)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(b"GET /stream.mjpg HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for("all look", lambda: dashboard.json()["picture"]["watchers"] == 16)
        self.assertEqual(dashboard.ask("/stream.mjpg")[0], 503)
        before, began = dashboard.frames(), time.monotonic()
        wait_for("frames go on", lambda: dashboard.frames() > before + 60, 20)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(png_size(dashboard.ask("/snapshot.png")[1]), (640, 360))
        # More connections than there are places: those that have been silent for longest give way.
        idle = [socket.create_connection(("127.0.0.1", dashboard.port)) for _ in range(64)]
        self.assertEqual(dashboard.ask("/metrics")[0], 200)
        idle[0].settimeout(10)
        self.assertEqual(idle[0].recv(100), b"")
        for s in idle + lazy:
            s.close()
        wait_for("room again", lambda: self.answers(dashboard))
        self.assertIsNone(run.poll())

    def test_actions_take_the_token(self):
        run, dashboard = self.running_dashboard()
        old = dashboard.process("fragment")["pid"]
        for token in ("", "0" * 32, dashboard.token[:-1]):
            status, text = dashboard.act("fragment", "kill", token)
            self.assertEqual(status, 403)
            self.assertIn("token", text)
        self.assertEqual(dashboard.ask("/stages/fragment/kill", headers={"X-Carousel-Token": dashboard.token})[0], 405)
        self.assertEqual(dashboard.act("fragment", "explode")[0], 404)
        self.assertEqual(dashboard.act("nobody", "kill")[0], 409)
        self.assertEqual(dashboard.process("fragment")["pid"], old)

        others = [dashboard.process(s)["pid"] for s in STAGES if s != "fragment"]
        self.assertEqual(dashboard.act("fragment", "kill")[0], 200)
        crash = wait_for("the crash and the return", lambda: (dashboard.json()["crash"] or {}).get("new_pid") and dashboard.json()["crash"])
        self.assertEqual((crash["stage"], crash["old_pid"]), ("fragment", old))
        self.assertEqual(wait_for("its successor", lambda: dashboard.process("fragment")["pid"] not in (None, old) and dashboard.process("fragment"))["restarts"], 1)
        wait_for("how it died", lambda: "SIGKILL" in (dashboard.json()["crash"]["how"] or ""))
        before = dashboard.frames()
        wait_for("frames go on", lambda: dashboard.frames() > before + 10)
        self.assertEqual([dashboard.process(s)["pid"] for s in STAGES if s != "fragment"], others)

        self.assertEqual(dashboard.act("vertex", "stop")[0], 200)
        wait_for("paused", lambda: dashboard.process("vertex")["state"] == "stopped")
        self.assertEqual(dashboard.act("vertex", "cont")[0], 200)
        before = dashboard.frames()
        wait_for("frames go on", lambda: dashboard.frames() > before + 10)
        self.assertIsNone(run.poll())


class Lifetimes(Rig):
    """The page's program and the run's lives."""

    def test_a_page_that_is_killed_comes_back_with_its_token_and_goes_with_the_run(self):
        port = free_port()
        run = self.start_run("--http", f"127.0.0.1:{port}", "--report", os.path.join(self.folder, "report.json"))
        dashboard = self.dashboard_of(run)
        wait_for("frames", lambda: dashboard.frames() > 5)
        first = self.dashboard_pid(run)
        os.kill(first, signal.SIGKILL)
        again = self.dashboard_of(run, 1)
        self.assertEqual((again.port, again.token), (port, dashboard.token))
        wait_for("the page again", lambda: self.answers(dashboard))
        self.assertEqual(dashboard.json()["pipeline"]["restarts"], 0)
        os.kill(self.dashboard_pid(run), signal.SIGSTOP)   # nor does one that hangs keep the run from its end
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 0, self.log(run))
        with self.assertRaises(OSError):
            dashboard.ask("/")

    def test_a_taken_port_is_an_error_and_the_pipeline_continues(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            run = self.start_run("--http", str(port), "--frames", "40")
            self.assertEqual(run.wait(60), 0, self.log(run))
            self.assertRegex(self.log(run), rf"can't be served at 127.0.0.1:{port}: .*in use.*choose another port")
            self.assertIn("there is no web UI; the pipeline continues", self.log(run))
            view = self.start("carousel", "view", "--http", str(port))
            self.assertEqual(view.wait(20), 2)
            self.assertIn("choose another port", self.log(view))
        for bad in ("nonsense", "1.2.3.4", "127.0.0.1:99999"):
            for words in (["run", os.path.join(self.pipelines, "demo.toml")], ["view"]):
                done = self.start("carousel", *words, "--http", bad)
                self.assertEqual(done.wait(20), 2)
                self.assertIn("expected ADDRESS:PORT", self.log(done))

    def test_a_view_waits_for_a_run_shows_its_end_and_takes_another_when_a_user_chooses_it(self):
        view = self.start("carousel", "view", "-p", "second", "--http", "0")
        dashboard = self.dashboard_of(view)
        wait_for("it says that it waits", lambda: 'no pipeline "second" is running' in dashboard.json()["notice"])
        self.assertEqual((dashboard.json()["phase"], dashboard.json()["pipeline"]), ("waiting", None))
        self.assertEqual(dashboard.ask("/snapshot.png")[0], 503)
        self.assertEqual(dashboard.act("fragment", "kill")[0], 503)
        run = self.start_run("--frames", "300", name="second")
        wait_for("a picture", lambda: dashboard.ask("/snapshot.png")[0] == 200)
        self.assertEqual(run.wait(60), 0)
        wait_for("the end", lambda: dashboard.json()["phase"] == "ended")
        self.assertIn("second has ended: exit code 0; showing its last state until the next run of this name, or another one is chosen",
                      dashboard.json()["notice"])
        self.assertEqual(png_size(dashboard.ask("/snapshot.png")[1]), (320, 180))   # the last one is kept
        of_no_run = metrics(dashboard.ask("/metrics")[1].decode())
        self.assertEqual(of_no_run.pop('carousel_up{pipeline="second"}'), 0)
        self.assertEqual([name.partition("{")[0] for name in of_no_run], ["carousel_build_info"])
        first = dashboard.json()["pipeline"]["run_id"]
        run = self.start_run(name="third")
        wait_for("the next run among the choices", lambda: [c["pid"] for c in dashboard.json()["choices"]] == [run.pid])
        time.sleep(1)   # several polls
        self.assertEqual((dashboard.json()["phase"], dashboard.json()["pipeline"]["run_id"]), ("ended", first))
        self.assertEqual(dashboard.choose("third", "0" * 32)[0], 403)
        self.assertEqual(dashboard.choose("fourth")[0], 409)
        self.assertEqual(dashboard.choose("third")[0], 200)
        wait_for("the next run", lambda: dashboard.json()["phase"] == "running" and dashboard.json()["pipeline"]["supervisor_pid"] == run.pid)
        self.assertEqual(dashboard.choose("third")[0], 409)   # one is being watched
        wait_for("its stages", lambda: all(s["processes"][0]["state"] == "running" for s in dashboard.json()["stages"]))
        pids = [s["processes"][0]["pid"] for s in dashboard.json()["stages"]]
        run.kill()   # not even a supervisor that is killed takes the view along
        run.wait()
        wait_for("the news", lambda: dashboard.json()["notice"] == "no supervisor, 4 stages continue")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: dashboard.json()["phase"] == "ended")
        self.assertIn("its supervisor was killed, and none of its stages is left", dashboard.json()["notice"])
        subprocess.run([os.path.join(self.programs, "carousel"), "clean"], env=self.environment, capture_output=True, timeout=30, check=True)
        view.send_signal(signal.SIGINT)
        self.assertEqual(view.wait(20), 0)
        self.assertIn("watching second", self.log(view))


    def test_a_dashboard_follows_its_own_run_to_its_next_supervisor(self):
        grace = ("--set", "supervisor_grace_s=60")
        run = self.start_run(*grace)
        view = self.start("carousel", "view", "-p", "demo", "--http", "0")
        dashboard = self.dashboard_of(view)
        unauthenticated = self.start_run(name="external")
        wait_for("frames", lambda: dashboard.json()["phase"] == "running" and dashboard.frames() > 5)
        mine = dashboard.json()["pipeline"]["run_id"]
        run.kill()
        run.wait()
        wait_for("the news", lambda: dashboard.json()["notice"] == "no supervisor, 4 stages continue")
        before = dashboard.frames()
        wait_for("frames without a supervisor", lambda: dashboard.frames() > before + 10)
        self.assertEqual((dashboard.json()["phase"], dashboard.json()["pipeline"]["run_id"]), ("running", mine))
        self.assertEqual(dashboard.act("fragment", "kill")[0], 409)   # no supervisor runs to do it
        run = self.start_run(*grace)
        wait_for("its next supervisor", lambda: dashboard.json()["pipeline"]["supervisor_pid"] == run.pid and dashboard.json()["notice"] == "")
        self.assertEqual(dashboard.json()["pipeline"]["run_id"], mine)
        shown = {"X-Carousel-Token": dashboard.token, "X-Carousel-Run": "another"}   # a button of a page that showed another run
        self.assertEqual(dashboard.ask("/stages/fragment/kill", "POST", shown)[0], 409)
        old = wait_for("fragment runs", lambda: dashboard.process("fragment").get("state") == "running" and dashboard.process("fragment")["pid"])
        self.assertEqual(dashboard.ask("/stages/fragment/kill", "POST", {**shown, "X-Carousel-Run": mine})[0], 200)
        wait_for("its successor", lambda: dashboard.process("fragment")["pid"] not in (None, old))
        others = subprocess.run([os.path.join(self.programs, "carousel"), "ps", "-p", "external", "--json"], env=self.environment, capture_output=True,
                                timeout=30, check=True).stdout
        self.assertEqual([s["restarts"] for s in json.loads(others)["stages"]], [0] * 4)
        self.assertIsNone(unauthenticated.poll())


@unittest.skipIf(browser.find() is None, "no Chromium here")
class Seen(Rig):
    def test_a_person_looks_kills_and_sees_it_come_back(self):
        run, dashboard = self.running_dashboard(size="1280x720", fps="0" if PICTURE else "30")
        address = f"http://127.0.0.1:{dashboard.port}/"
        b = browser.Browser(browser.find(), 1440, 1250)
        self.addCleanup(b.close)
        b.open(address)
        wait_for("the table", lambda: b.value("document.querySelectorAll('#rows tr').length") == 4)
        self.assertEqual(b.value("document.querySelectorAll('#rows button:enabled').length"), 0)
        self.assertIn("?token=", b.value("document.getElementById('may-act').textContent"))
        b.open(address + "?token=" + dashboard.token)
        wait_for("buttons", lambda: b.value("document.querySelectorAll('#rows button:enabled').length") == 12)
        self.assertEqual(b.value("location.search"), "")
        wait_for("the picture", lambda: b.value("document.getElementById('live').naturalWidth") == 1280)
        old = dashboard.process("fragment")["pid"]
        time.sleep(12 if PICTURE else 1)   # a picture for people has something in its plots
        b.confirm("[data-verb=kill][data-stage=fragment]")
        text = wait_for("the banner", lambda: "Back as pid" in b.value("document.getElementById('banner').textContent")
                        and b.value("document.getElementById('banner').textContent"))
        self.assertIn(f"fragment (pid {old}) died", text)
        time.sleep(4 if PICTURE else 0)
        if PICTURE:
            b.screenshot(PICTURE)
        self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), True)
        end_process(run)
        wait_for("the page says that its program is gone", lambda: not b.value("document.getElementById('notice').hidden"))


if __name__ == "__main__":
    if shutil.which("ps") is None:
        skip("not installed: ps")
    unittest.main(argv=sys.argv[:1], verbosity=2)
