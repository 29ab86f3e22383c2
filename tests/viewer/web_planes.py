"""Planes through the web page: which one is shown, in which colours, the value at a pixel, two next to each other. Run by test_web.py."""
import http.client
import json
import os
import subprocess
import time
import unittest

import browser
from web_rig import Rig, wait_for

FILE = """[pipeline]
name = "planes"
[[stage]]
name = "scene"
run = "carousel-test-planes"
[[stage]]
name = "slope"
run = "carousel-test-planes"
inputs = ["scene"]
[[stage]]
name = "look"
run = "carousel-test-planes"
inputs = ["slope"]
sink = true
"""

# Both pictures by one stage, of two outputs.
FORKED = """[pipeline]
name = "planes"
[[stage]]
name = "scene"
run = "carousel-test-planes"
slope = true
[[stage]]
name = "look"
run = "carousel-test-planes"
inputs = ["scene.slope", "scene"]
sink = true
"""


class PlanesRig(Rig):
    def running_planes(self, size="320x180", fps="30", text=FILE):
        path = os.path.join(self.folder, "planes.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        run = self.start("carousel", "run", path, "--device", "cpu", "--size", size, "--fps", fps, "--no-color", "--http", "0")
        dashboard = self.dashboard_of(run)
        wait_for("frames", lambda: dashboard.json()["phase"] == "running" and dashboard.frames() > 5)
        return run, dashboard

    def show(self, dashboard, token=None, **request):
        status, text, _ = dashboard.ask("/picture", "POST", {"X-Carousel-Token": dashboard.token if token is None else token}, body=json.dumps(request))
        return status, text.decode()

    def shown(self, dashboard, test):
        """The shown pictures once they are as expected; a client must poll for them to advance."""
        def poll():
            self.assertEqual(dashboard.ask("/snapshot.png")[0], 200)
            s = dashboard.json()["picture"]["shown"]
            return s if s and test(s) else None
        return wait_for("the picture that was asked for", poll)


class Planes(PlanesRig):
    def test_each_plane_of_each_ring_can_be_shown_with_its_scale_and_its_exact_values(self):
        _, dashboard = self.running_planes()
        slope, = self.shown(dashboard, lambda s: s[0]["stage"] == "slope")
        self.assertEqual((slope["plane"], slope["type"], slope["width"], slope["height"]), ("slope", "f32", 160, 90))
        self.assertEqual(slope["values"]["colours"], "viridis")
        self.assertEqual(self.show(dashboard, stage="scene")[0], 200)
        color, = self.shown(dashboard, lambda s: s[0]["stage"] == "scene")
        self.assertEqual((color["plane"], color["planes"], color["values"]), ("color", ["nv12", "color", "depth", "raw", "radiance"], None))
        self.assertEqual({c["name"]: c["value"] for c in color["carries"]}, {"exposure_ms": "3.5", "camera": '"left"'})
        pixel = dashboard.json("/pixel.json?x=10&y=10")
        self.assertRegex(pixel["text"], r"^R \d+ G \d+ B \d+ A 255$")

        self.assertEqual(self.show(dashboard, plane="depth", range="0..10")[0], 200)
        depth, = self.shown(dashboard, lambda s: s[0]["plane"] == "depth" and s[0]["values"]["high"] == 10)
        v = depth["values"]
        self.assertEqual((v["low"], v["low_text"], v["high_text"], len(v["ramp"])), (0, "0", "10", 17))
        self.assertGreater(v["nan"], 50)
        self.assertGreater(v["infinite"], 500)
        self.assertIn("NaN", v["beyond"])
        corner = dashboard.json("/pixel.json?x=0&y=0")   # which contains the frame's number
        self.assertEqual((corner["stage"], corner["plane"], corner["text"]), ("scene", "depth", str(corner["frame"])))
        self.assertEqual(dashboard.json("/pixel.json?x=5&y=175")["text"], "nan")
        self.assertEqual(dashboard.json("/pixel.json?x=310&y=5")["text"], "inf")
        self.assertIsNone(dashboard.json("/pixel.json?x=320&y=5"))

        top = subprocess.run([os.path.join(self.programs, "carousel"), "top", "--once", "--image-of", "scene/depth"], env=self.environment,
                             capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertRegex(top, r"scene depth f32 · frame \d+: .* to .*NaN")
        self.assertIn("\u2580", top)

        self.show(dashboard, plane="raw", range="extremes", colours="viridis")
        raw, = self.shown(dashboard, lambda s: s[0]["plane"] == "raw")
        self.assertEqual((raw["type"], raw["values"]["colours"], raw["values"]["beyond"]), ("u16", "viridis", ""))
        self.assertGreater(raw["values"]["low"], 1000)
        self.show(dashboard, plane="nv12")
        nv12, = self.shown(dashboard, lambda s: s[0]["plane"] == "nv12")
        self.assertEqual((nv12["type"], nv12["height"], nv12["values"]), ("NV12", 180, None))
        self.assertRegex(dashboard.json("/pixel.json?x=10&y=10")["text"], r"^Y \d+ U 136 V 122$")

    def test_two_rings_are_shown_of_one_frame_or_the_reason_why_not(self):
        run, dashboard = self.running_planes()
        self.assertEqual(self.show(dashboard, stage="slope", compare="scene", compare_plane="depth")[0], 200)
        left, right = self.shown(dashboard, lambda s: len(s) == 2)
        self.assertEqual((left["stage"], right["stage"], right["plane"]), ("slope", "scene", "depth"))
        self.assertEqual((left["zoom"], right["zoom"], right["x"]), (2, 1, 328))
        seen = set()
        for _ in range(5):
            dashboard.ask("/snapshot.png")
            left, right = dashboard.json()["picture"]["shown"]
            self.assertEqual(left["frame"], right["frame"])
            seen.add(left["frame"])
            numbers = [dashboard.json(f"/pixel.json?x={x}&y=0") for x in (1, 328)]
            self.assertEqual([n["text"] for n in numbers], [str(n["frame"]) for n in numbers])
        self.assertGreater(len(seen), 2)
        self.assertEqual(dashboard.json()["picture"]["note"], "")
        self.assertEqual(dashboard.act("look", "stop")[0], 200)   # its input fills, the ring before that goes further
        note = wait_for("the note", lambda: dashboard.ask("/snapshot.png")[0] == 200 and dashboard.json()["picture"]["note"])
        self.assertRegex(note, r"^frames \d+ and \d+ are shown together, because no frame was in both rings for 0\.5 s$")
        left, right = dashboard.json()["picture"]["shown"]
        self.assertNotEqual(left["frame"], right["frame"])
        self.assertEqual(dashboard.act("look", "cont")[0], 200)
        self.shown(dashboard, lambda s: len(s) == 2 and s[0]["frame"] == s[1]["frame"])
        self.show(dashboard, compare="")
        self.shown(dashboard, lambda s: len(s) == 1)
        self.assertIsNone(run.poll())

    def test_the_ring_of_a_second_output_is_listed_counted_and_shown_next_to_the_first(self):
        _, dashboard = self.running_planes(text=FORKED)
        self.assertEqual([(r["stage"], [x["stage"] for x in r["readers"] if x["kind"] == "blocking"]) for r in dashboard.json()["rings"]],
                         [("scene", ["look"]), ("scene.slope", ["look"])])
        first, = self.shown(dashboard, lambda s: len(s) == 1)   # what the last sink reads
        self.assertEqual((first["stage"], first["plane"], first["width"]), ("scene.slope", "slope", 160))
        self.assertEqual(self.show(dashboard, stage="scene", plane="depth", compare="scene.slope")[0], 200)
        left, right = self.shown(dashboard, lambda s: len(s) == 2)
        self.assertEqual((left["stage"], right["stage"], left["frame"]), ("scene", "scene.slope", right["frame"]))
        numbers = [dashboard.json(f"/pixel.json?x={x}&y=0") for x in (0, 329)]
        self.assertEqual([(n["stage"], n["text"]) for n in numbers], [(name, str(numbers[0]["frame"])) for name in ("scene", "scene.slope")])
        figures = dashboard.ask("/metrics")[1].decode()
        self.assertRegex(figures, r'carousel_ring_bytes_total\{pipeline="planes",ring="scene\.slope"\} [1-9]')
        status, text = self.show(dashboard, stage="scene.slop")
        self.assertEqual((status, 'did you mean "scene.slope"' in text), (400, True), text)

        top = subprocess.run([os.path.join(self.programs, "carousel"), "top", "--once", "--image-of", "scene.slope"], env=self.environment,
                             capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertRegex(top, r"(?m)^scene\.slope +\d+ .* look lag \d+, a viewer \(latest\) +[.wRrd]{8,}$")
        self.assertRegex(top, r"scene\.slope slope f32 · frame \d+: ")
        self.assertIn("\u2580", top)

    def test_a_first_output_is_shown_by_its_own_name_too(self):
        _, dashboard = self.running_planes(text=FORKED)
        wait_for("what the supervisor says of rings", lambda: self.show(dashboard, stage="scene.scene")[0] == 200)
        first, = self.shown(dashboard, lambda s: s[0]["stage"] == "scene")
        request = dashboard.json()["picture"]["request"]
        self.assertEqual((request["stage"], first["width"]), ("scene", 320))
        self.assertEqual(self.show(dashboard, stage="scene.slope", compare="scene.scene")[0], 200)
        self.shown(dashboard, lambda s: [each["stage"] for each in s] == ["scene.slope", "scene"])
        status, text = self.show(dashboard, stage="scene.scen")
        self.assertEqual((status, 'no stage "scene.scen" with an output; did you mean "scene.scene"' in text), (400, True), text)

    def test_a_page_of_its_own_streams_a_first_output_by_its_name(self):
        self.running_planes(text=FORKED)
        for name, size in (("scene.scene", (320, 180)), ("scene.slope", (160, 90))):
            dashboard = self.dashboard_of(self.start("carousel-web", "-p", "planes", "--stage", name, "--http", "0"))
            connection = http.client.HTTPConnection("127.0.0.1", dashboard.port, timeout=20)
            self.addCleanup(connection.close)
            connection.request("GET", "/stream.mjpg")
            parts = connection.getresponse()
            wait_for(f"pictures of {name}", lambda: b"\xff\xd8\xff" in parts.read(4096))   # a JPEG's first bytes
            shown, = dashboard.json()["picture"]["shown"]
            self.assertEqual((shown["stage"], shown["width"], shown["height"]), (name.removesuffix(".scene"), *size))

    def test_light_has_an_exposure_and_a_tone_map(self):
        _, dashboard = self.running_planes()
        self.assertEqual(self.show(dashboard, stage="scene", plane="radiance")[0], 200)
        light, = self.shown(dashboard, lambda s: s[0]["plane"] == "radiance")
        self.assertEqual((light["values"]["colours"], light["values"]["ramp"], light["channels"]), ("light", [], ["red", "green", "blue"]))
        self.assertIn("light", light["maps"])
        means = {}
        for request in ({"exposure": "-5"}, {"exposure": "0"}, {"exposure": "5"}):
            self.assertEqual(self.show(dashboard, **request)[0], 200)
            self.assertEqual(dashboard.json()["picture"]["request"]["exposure"], request["exposure"])
            time.sleep(0.2)   # the next frame has the new colours
            means[request["exposure"]] = len(dashboard.ask("/snapshot.png")[1])
        self.assertEqual(len(set(means.values())), 3, means)
        for request in ({"tone_map": "linear"}, {"channel": "green"}):
            self.assertEqual(self.show(dashboard, **request)[0], 200)
            self.assertEqual(dashboard.json()["picture"]["request"] | request, dashboard.json()["picture"]["request"])

    def test_what_can_t_be_shown_is_a_sentence_and_only_the_token_chooses(self):
        _, dashboard = self.running_planes()
        for token in ("", "0" * 32):
            self.assertEqual(self.show(dashboard, token, stage="scene")[0], 403)
        self.assertEqual(dashboard.ask("/picture", headers={"X-Carousel-Token": dashboard.token})[0], 405)
        before = dashboard.json()["picture"]["request"]
        for request, sentence in (({"stage": "scen"}, 'did you mean "scene"'), ({"range": "3..1"}, "LOW..HIGH"), ({"colours": "jet"}, "viridis"),
                               ({"exposure": "17"}, "a number from -16 to 16"), ({"compare_tone_map": "film"}, "neutral, aces or linear"),
                               ({"plain": "x"}, "not one of stage, plane"), ({"stage": 7}, "expected a text"), ({}, "not a JSON object with members"),
                               ({"beside_plane": "x"}, 'did you mean "compare_plane"'),
                               ({"compare_plane": "depth"}, "no second picture is shown"), ({"plane": "raw", "compare": "look"}, 'no stage "look" with an output')):
            status, text = self.show(dashboard, **request)
            self.assertEqual(status, 400, request)
            self.assertIn(sentence, text)
        self.assertEqual(dashboard.json()["picture"]["request"], before)
        self.assertEqual(self.show(dashboard, stage="scene", plane="list")[0], 200)
        problem = wait_for("why there is no picture", lambda: dashboard.ask("/snapshot.png") and dashboard.json()["picture"]["problem"])
        self.assertIn('it has no plane "list" that is a picture; pictures are: nv12, color, depth, raw, radiance', problem)
        self.show(dashboard, stage="scene")
        self.shown(dashboard, lambda s: s[0]["plane"] == "color")
        self.assertEqual(dashboard.ask("/pixel.json?x=-1&y=2")[0], 400)
        self.assertEqual(dashboard.ask("/pixel.json")[0], 400)


@unittest.skipIf(browser.find() is None, "no Chromium here")
class PlanesSeen(PlanesRig):
    picture = None   # a file: what a person sees, as a picture

    def choose(self, b, key, value):
        b.value(f"(() => {{ const e = document.querySelector('[data-request={key}]'); e.value = '{value}'; "
                "e.dispatchEvent(new Event('change', {bubbles: true})); })()")

    def test_a_person_chooses_a_plane_reads_its_scale_and_points_at_a_pixel(self):
        _, dashboard = self.running_planes(size="640x360", text=FORKED)
        b = browser.Browser(browser.find(), 1440, 1000)
        self.addCleanup(b.close)
        b.open(f"http://127.0.0.1:{dashboard.port}/?token={dashboard.token}")
        wait_for("the controls", lambda: b.value("document.querySelectorAll('#picture-set select').length") == 5)
        self.choose(b, "stage", "scene")
        wait_for("its planes", lambda: b.value("(document.querySelector('[data-request=plane]') || {}).value") == "color")
        self.assertTrue(b.value("document.getElementById('scales').hidden"))
        self.choose(b, "plane", "depth")
        wait_for("the scale", lambda: b.value("document.querySelectorAll('.scale .bar').length") == 1)
        self.assertIn("NaN", b.value("document.getElementById('scales').textContent"))
        self.choose(b, "range", "fixed")
        wait_for("two numbers", lambda: b.value("document.querySelectorAll('[data-range=range]').length") == 2)
        self.choose(b, "compare", "scene.slope")
        wait_for("two pictures", lambda: b.value("document.querySelectorAll('.scale').length") == 2)
        wait_for("both in the picture", lambda: b.value("live.naturalWidth") == 640 * 2 + 8)
        x, y = b.value("(r => [r.left + r.width / 4, r.top + r.height / 2])(live.getBoundingClientRect())")
        b.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        text = wait_for("the value", lambda: b.value("document.getElementById('pixel').textContent"))
        self.assertRegex(text, r"^x \d+ y \d+ of scene depth: \d+\.\d+ · frame [\d,]+$")
        self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), True)
        if self.picture:
            time.sleep(6)   # a picture for people has something in its plots
            b.screenshot(self.picture)
