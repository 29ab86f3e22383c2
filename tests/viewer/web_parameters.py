"""Parameters through the web page: what may be set, setting it, and the page's controls. Run by test_web.py."""
import json
import unittest

import browser
from web_rig import Rig, wait_for

SHOWN = "document.getElementById('parameter-{}')"


class Parameters(Rig):
    def post(self, dashboard, path, body=None, **headers):
        status, text, _ = dashboard.ask(path, "POST", {"X-Carousel-Token": dashboard.token, **headers}, body=body)
        return status, text.decode()

    def set(self, dashboard, **values):
        status, text = self.post(dashboard, "/parameters", json.dumps(values))
        return status, json.loads(text)

    def known(self, dashboard):
        """The page's program asks the supervisor for them: they are there a moment after the first frames."""
        return wait_for("the parameters", lambda: dashboard.json()["parameters"])

    def reaches(self, dashboard, what, test):
        return wait_for(what, lambda: (p := dashboard.json()["parameters"]) and test(p) and p)

    def test_what_may_be_set_is_described_with_its_values(self):
        _, dashboard = self.running_dashboard()
        p = self.known(dashboard)
        self.assertEqual((p["type"], p["number"]), ("carousel.scene", 0))
        fields = {f["name"]: f for f in p["fields"]}
        self.assertLessEqual({"eye", "target", "up", "fov_y", "near", "far", "light", "ambient", "spin", "exposure", "shading", "wireframe", "orbit"}, set(fields))
        self.assertEqual(set(p["values"]), set(fields))
        e = fields["exposure"]
        self.assertEqual((e["kind"], e["low"], e["high"], e["usual_low"], e["usual_high"]), ("number", 0, 1000, 0.1, 4))
        self.assertEqual((fields["shading"]["kind"], fields["shading"]["choices"]), ("choice", ["lit", "normals", "triangles", "depth"]))
        self.assertEqual((fields["eye"]["count"], fields["wireframe"]["kind"]), (3, "flag"))
        self.assertEqual((p["values"]["exposure"], p["values"]["wireframe"], len(p["values"]["eye"])), (1, False, 3))
        self.assertEqual(dashboard.json("/parameters.json"), p)
        self.assertIn('carousel_parameter_changes_total{pipeline="demo"} 0\n', dashboard.ask("/metrics")[1].decode())
        self.assertIn("/parameters", dashboard.ask("/nothing")[1].decode())

    def test_only_a_client_with_the_token_sets_parameters(self):
        _, dashboard = self.running_dashboard()
        before = self.known(dashboard)
        for token in ("", "0" * 32, dashboard.token[:-1]):
            for path in ("/parameters", "/parameters/reset"):
                status, _, _ = dashboard.ask(path, "POST", {"X-Carousel-Token": token}, body='{"exposure": 2}')
                self.assertEqual(status, 403)
        self.assertEqual(dashboard.ask("/parameters", headers={"X-Carousel-Token": dashboard.token})[0], 405)
        self.assertEqual(dashboard.ask("/parameters.json", "POST", {"X-Carousel-Token": dashboard.token})[0], 405)
        self.assertEqual(dashboard.json("/parameters.json"), before)

        status, answer = self.set(dashboard, exposure=2.5)
        self.assertEqual((status, answer["ok"]), (200, True), answer)
        self.assertIn("exposure", answer["message"])
        after = self.reaches(dashboard, "the new exposure", lambda p: p["number"] == 1)
        self.assertEqual((after["values"], after["from"]), ({**before["values"], "exposure": 2.5}, answer["from"]))
        self.assertGreater(after["from"], 0)
        wait_for("frames that have it", lambda: dashboard.frames() > after["from"] + 5)
        self.assertIn('carousel_parameter_changes_total{pipeline="demo"} 1\n', dashboard.ask("/metrics")[1].decode())

        status, answer = self.set(dashboard, shading="normals", wireframe=True, eye=[0, 1, 6])   # several at once: one change
        self.assertEqual(status, 200, answer)
        after = self.reaches(dashboard, "the second change", lambda p: p["number"] == 2)
        self.assertEqual([after["values"][k] for k in ("shading", "wireframe", "eye")], ["normals", True, [0, 1, 6]])

        status, text = self.post(dashboard, "/parameters/reset")
        self.assertEqual(status, 200, text)
        after = self.reaches(dashboard, "the values of the start", lambda p: p["number"] == 3)
        self.assertEqual((after["values"], after["from"]), (before["values"], json.loads(text)["from"]))

    def test_what_makes_no_sense_changes_nothing(self):
        _, dashboard = self.running_dashboard()
        before = self.known(dashboard)
        for body in ("", "exposure=2", "[1]", "2", '{"exposure": 2', '{"exposure": 2}}', "\xff", "{}"):
            status, text = self.post(dashboard, "/parameters", body)
            self.assertEqual((status, text.count("\n")), (400, 1), (body, text))
            self.assertIn("the body", text)
        status, answer = self.set(dashboard, exposure=5000)
        self.assertEqual((status, answer["ok"]), (409, False))
        self.assertIn("exposure = 5000: expected a number from 0 to 1000", answer["message"])
        for values in ({"exposur": 1}, {"exposure": "bright"}, {"shading": "dark"}, {"eye": [1, 2]}, {"exposure": 2, "spin": "fast"}):
            status, answer = self.set(dashboard, **values)
            self.assertEqual((status, answer["ok"]), (409, False), values)
            self.assertTrue(answer["message"])
        self.assertEqual(self.post(dashboard, "/parameters", json.dumps({"exposure": 2, "x" * 9000: 1}))[0], 413)
        self.assertEqual(self.post(dashboard, "/parameters/nothing", '{"exposure": 2}')[0], 404)
        self.assertEqual(self.post(dashboard, "/parameters", '{"exposure": 2}', **{"X-Carousel-Run": "another"})[0], 409)
        before_frames = dashboard.frames()
        wait_for("frames go on", lambda: dashboard.frames() > before_frames + 5)
        self.assertEqual(dashboard.json("/parameters.json"), before)


@unittest.skipIf(browser.find() is None, "no Chromium here")
class ParametersSeen(Rig):
    """The panel in a browser."""

    def opened(self, width, height, token=True, dark=True):
        _, dashboard = self.running_dashboard()
        b = browser.Browser(browser.find(), width, height, dark)
        self.addCleanup(b.close)
        b.open(f"http://127.0.0.1:{dashboard.port}/" + (f"?token={dashboard.token}" if token else ""))
        wait_for("the controls", lambda: b.value("document.querySelectorAll('#parameter-list input').length") > 5)
        return dashboard, b

    def move(self, b, name, value):
        b.value(f"{{ const e = {SHOWN.format(name)}; e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input', {{bubbles: true}}));"
                " e.dispatchEvent(new Event('change', {bubbles: true})); }")

    def exposure(self, dashboard):
        return dashboard.json()["parameters"]["values"]["exposure"]

    def test_a_moved_slider_changes_the_run_and_what_others_set_moves_it(self):
        dashboard, b = self.opened(1440, 1180)
        slider = SHOWN.format("exposure")
        self.assertEqual(b.value(f"[{slider}.type, {slider}.min, {slider}.max, {slider}.matches(':enabled')]"), ["range", "0.1", "4", True])
        self.assertEqual(b.value(f"{slider}.labels.length"), 1)
        self.assertIn("°", b.value(f"{SHOWN.format('fov_y')}.labels[0].textContent"))
        self.assertEqual(b.value(f"{SHOWN.format('wireframe')}.type"), "checkbox")
        self.assertEqual(b.value(f"[...{SHOWN.format('shading')}.options].map(o => o.value)"), ["lit", "normals", "triangles", "depth"])
        self.assertEqual(b.value("document.querySelectorAll('[aria-labelledby=parameter-eye] input[type=number]').length"), 3)
        self.assertIsNone(b.value(SHOWN.format("up")))
        self.move(b, "exposure", "2")
        wait_for("the run follows", lambda: abs(self.exposure(dashboard) - 2) < 0.03)
        self.move(b, "shading", "depth")
        wait_for("the choice", lambda: dashboard.json()["parameters"]["values"]["shading"] == "depth")
        # A drag: many values, few requests, and the last one stays.
        b.value(f"for (let k = 0; k <= 40; ++k) {{ {slider}.value = 1 + k / 20; {slider}.dispatchEvent(new Event('input', {{bubbles: true}})); }}")
        wait_for("the last value", lambda: abs(self.exposure(dashboard) - 3) < 0.03)
        self.assertLess(dashboard.json()["parameters"]["number"], 6)

        status, _, _ = dashboard.ask("/parameters", "POST", {"X-Carousel-Token": dashboard.token}, body='{"exposure": 0.5}')
        self.assertEqual(status, 200)
        wait_for("the slider follows", lambda: abs(float(b.value(f"{slider}.value")) - 0.5) < 0.03)
        b.value(f"{{ const e = {slider}.parentNode.querySelector('[type=number]'); e.value = '5000'; e.dispatchEvent(new Event('change')); }}")
        wait_for("the refusal", lambda: "expected a number from 0 to 1000" in b.value("document.getElementById('may-act').textContent"))
        wait_for("the true value again", lambda: abs(float(b.value(f"{slider}.value")) - 0.5) < 0.03)
        b.confirm("#parameters-reset")
        wait_for("the values of the start", lambda: self.exposure(dashboard) == 1)
        wait_for("the slider too", lambda: abs(float(b.value(f"{slider}.value")) - 1) < 0.03)

    def test_without_the_token_the_controls_are_off_also_on_a_narrow_light_page(self):
        dashboard, b = self.opened(360, 740, token=False, dark=False)
        self.assertEqual(b.value("document.querySelectorAll('#parameters :is(input, select, button):enabled').length"), 0)
        self.assertEqual(b.value("[...document.querySelectorAll('#parameters :is(input, select, button)')].filter(e => !e.title.includes('token')).length"), 0)
        self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), True)
        self.move(b, "exposure", "3")   # a client that enables them by hand gets a refusal
        wait_for("the refusal", lambda: "token" in b.value("document.getElementById('parameters-note').textContent"))
        self.assertEqual(dashboard.json()["parameters"]["number"], 0)
