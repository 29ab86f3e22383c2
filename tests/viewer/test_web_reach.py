"""The web UI on a phone and by keyboard: sizes, focus, names, contrast, confirmations. Usage: test_web_reach.py PROGRAMS PIPELINES [class]"""
import os
import sys
import unittest

import browser
from web_rig import Rig, wait_for
from processes import skip  # web_rig has made it findable

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PICTURES = os.environ.get("CAROUSEL_TEST_PICTURES")   # folder for pictures of the page
NARROW = 360

# Elements that end outside the window, apart from those in a part that scrolls by itself.
OUTSIDE = """[...document.querySelectorAll('body *')].filter(e => {
  const r = e.getBoundingClientRect();
  if (r.width === 0 || r.height === 0 || (r.left >= 0 && r.right <= innerWidth + 0.5)) return false;
  for (let p = e.parentElement; p; p = p.parentElement) if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.tagName + '#' + e.id + '.' + e.className)"""

CONTROLS = """[...document.querySelectorAll('a[href], button, select, input, [tabindex="0"]')].filter(e => !e.matches(':disabled') && e.checkVisibility())"""

# A target is the control; for a checkbox, its label as well.
SMALL = """(() => { const out = []; for (const e of %s) {
  if (e.matches('[tabindex]') || !e.checkVisibility()) continue;
  const all = [e, ...(e.labels || [])].map(x => x.getBoundingClientRect());
  if (!all.some(r => r.height >= 44 && r.width >= 44)) out.push(`${e.tagName} ${e.id || e.textContent.slice(0, 20)} ${all.map(r => `${r.width} x ${r.height}`)}`);
} return out; })()""" % CONTROLS

NAME = "e => (e.getAttribute('aria-label') || [...(e.labels || [])].map(l => l.textContent).join() || e.alt || e.textContent || '').trim()"

# Contrast of text with the background of the nearest element that has one. Not judged: what is disabled, and what lies on a gradient.
PALE = """(() => {
  const rgb = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const out = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.matches('option, script, style') || e.closest(':disabled')) continue;
    const color = rgb(getComputedStyle(e).color);
    if (color[3] === 0) continue;
    let p = e;
    while (p && (rgb(getComputedStyle(p).backgroundColor)[3] === 0 && getComputedStyle(p).backgroundImage === 'none')) p = p.parentElement;
    const under = p ? getComputedStyle(p) : null;
    if (!under || under.backgroundImage !== 'none' || rgb(under.backgroundColor).length > 3) continue;
    const [a, b] = [light(color), light(rgb(under.backgroundColor))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) out.push(`${e.tagName}#${e.id}.${e.className} "${e.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return [...new Set(out)];
})()"""


class Reach(Rig):
    def opened(self, dashboard, width, height, dark=True, buttons=12):
        b = browser.Browser(browser.find(), width, height, dark)
        self.addCleanup(b.close)
        b.open(f"http://127.0.0.1:{dashboard.port}/?token={dashboard.token}")
        wait_for("buttons", lambda: b.value("document.querySelectorAll('#rows button:enabled').length") == buttons, 60)
        wait_for("the picture", lambda: b.value("document.getElementById('live').naturalWidth") == 320)
        wait_for("its frame", lambda: "frame " in b.value("document.getElementById('picture-about').textContent"))
        wait_for("the controls of the picture", lambda: b.value("document.querySelectorAll('#picture-set select').length") > 1)
        return b

    def picture(self, b, name):
        if PICTURES:
            b.screenshot(os.path.join(PICTURES, name + ".png"))

    def focused(self, b):
        return b.value("(e => [e.dataset.verb || e.id || e.tagName, e.dataset.stage || ''])(document.activeElement)")


class Sizes(Reach):
    def check(self, dashboard, name, buttons):
        for width, height, dark in ((NARROW, 740, True), (NARROW, 740, False), (1280, 720, True), (1280, 720, False)):
            b = self.opened(dashboard, width, height, dark, buttons)
            self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), True, (width, b.value(OUTSIDE)))
            self.assertEqual(b.value(OUTSIDE), [], width)
            self.assertEqual(b.value(PALE), [], (width, dark))
            if width == NARROW:
                self.assertEqual(b.value(SMALL), [], width)
            self.picture(b, f"{name}-{width}x{height}-{'dark' if dark else 'light'}")

    def test_the_checks_find_a_wide_a_small_and_a_pale_element(self):
        _, dashboard = self.running_dashboard()
        b = self.opened(dashboard, NARROW, 740)
        b.value("""document.querySelector('main').insertAdjacentHTML('beforeend',
            '<div id="wide" style="width:400px"><button style="min-height:0;height:30px;color:#777;background:#888">small</button></div>')""")
        self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), False)
        self.assertEqual([e.split("#")[1] for e in b.value(OUTSIDE)], ["wide."])
        self.assertRegex("\n".join(b.value(SMALL)), "^BUTTON small")
        self.assertRegex("\n".join(b.value(PALE)), '^BUTTON#. "small" 1\\.')

    def test_nothing_lies_outside_and_targets_and_contrast_suffice_at_360_and_1280_pixels(self):
        _, dashboard = self.running_dashboard()
        self.check(dashboard, "web-demo", 12)

    def test_a_pipeline_of_twenty_stages_fits_as_well(self):
        names = ["fragment", *(f"sharpen-the-picture-{k:02}" for k in range(16))]
        with open(os.path.join(self.pipelines, "demo.toml"), encoding="utf-8") as f:
            text = f.read().replace('inputs = ["fragment"]', f'inputs = ["{names[-1]}"]')
        for before, name in zip(names, names[1:]):
            text += f'\n[[stage]]\nname = "{name}"\nrun = "carousel-sharpen"\ninputs = ["{before}"]\n'
        path = os.path.join(self.folder, "twenty.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        run = self.start("carousel", "run", path, "--device", "cpu", "--size", "320x180", "--name", "twenty", "--set", "geometry.triangles=500",
                         "--fps", "5", "--out", "", "--no-color", "--http", "0")
        dashboard = self.dashboard_of(run)
        wait_for("frames", lambda: dashboard.json()["phase"] == "running" and dashboard.frames() > 5, 60)
        self.check(dashboard, "web-twenty", 60)


class Keyboard(Reach):
    def test_tab_reaches_every_control_with_a_name_and_a_visible_focus(self):
        _, dashboard = self.running_dashboard()
        for width in (NARROW, 1280):
            b = self.opened(dashboard, width, 740)
            b.value("window.seen = new Map()")
            count = b.value(f"{CONTROLS}.length")
            self.assertGreater(count, 30)
            for _ in range(count + 20):
                b.press("Tab")
                b.value("""{ const e = document.activeElement, r = e.getBoundingClientRect(), s = getComputedStyle(e);
                    seen.set(e, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1.5 && r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth); }""")
            self.assertEqual(b.value(f"{CONTROLS}.filter(e => !seen.has(e)).map(e => e.outerHTML.slice(0, 90))"), [], width)
            self.assertEqual(b.value(f"{CONTROLS}.filter(e => !seen.get(e)).map(e => e.outerHTML.slice(0, 90))"), [], width)
            self.assertEqual(b.value(f"{CONTROLS}.filter(e => !({NAME})(e)).map(e => e.outerHTML.slice(0, 90))"), [], width)

    def test_a_stage_is_killed_only_after_a_confirmation_and_escape_cancels(self):
        _, dashboard = self.running_dashboard()
        b = self.opened(dashboard, NARROW, 740)
        old = dashboard.process("vertex")["pid"]
        for opens, closes in (("Enter", "Escape"), (" ", "Escape"), ("Enter", "Enter"), (" ", " ")):   # the focus is on "cancel"
            b.value("document.querySelector('[data-verb=kill][data-stage=vertex]').focus()")
            b.press(opens)
            wait_for("the question", lambda: b.value("document.getElementById('confirm').open"))
            self.assertRegex(b.value("document.getElementById('confirm-text').textContent"), "^kill vertex\\? ")
            self.assertEqual(self.focused(b), ["confirm-no", ""])
            self.picture(b, "web-confirm")
            b.press(closes)
            wait_for("its end", lambda: not b.value("document.getElementById('confirm').open"))
            self.assertEqual(self.focused(b), ["kill", "vertex"])
        self.assertEqual(dashboard.process("vertex")["pid"], old)
        b.press("Enter")
        b.press("Tab")
        self.assertEqual(self.focused(b), ["confirm-yes", ""])
        b.press("Enter")
        wait_for("another process", lambda: dashboard.process("vertex")["pid"] not in (None, old))
        wait_for("the button has the focus", lambda: self.focused(b) == ["kill", "vertex"])
        b.press("Tab")
        self.assertEqual(self.focused(b), ["stop", "vertex"])
        b.press(" ")
        b.press("Tab")
        b.press(" ")
        wait_for("the pause", lambda: dashboard.process("vertex")["state"] == "stopped")
        wait_for("its opposite", lambda: self.focused(b)[1] == "vertex" and b.value("document.querySelectorAll('[data-verb=cont]').length") == 1)
        b.value("document.querySelector('[data-verb=cont]').focus()")
        b.press("Enter")   # needs no confirmation
        wait_for("frames", lambda: dashboard.process("vertex")["state"] == "running")

    def test_arrow_keys_show_the_value_of_a_pixel_and_a_choice_keeps_the_focus(self):
        _, dashboard = self.running_dashboard()
        b = self.opened(dashboard, NARROW, 740)
        b.value("document.getElementById('live').focus()")
        b.press("ArrowRight")
        wait_for("the value", lambda: "x 161 y 90 of fragment" in b.value("document.getElementById('pixel').textContent"))
        b.press("ArrowUp", shift=True)
        wait_for("another pixel", lambda: "x 161 y 70 " in b.value("document.getElementById('pixel').textContent"))
        self.assertEqual(b.value("document.getElementById('probe').checkVisibility()"), True)
        b.press("Escape")
        self.assertEqual(b.value("document.getElementById('pixel').textContent"), "")
        b.value("document.querySelector('[data-request=compare]').focus()")
        b.press("f")   # the option that begins with it
        wait_for("another picture", lambda: dashboard.json()["picture"]["request"]["compare"] == "fragment")
        wait_for("its controls", lambda: b.value("document.querySelector('[data-request=compare_plane]') !== null"))
        self.assertEqual(b.value("document.activeElement.dataset.request"), "compare")


if __name__ == "__main__":
    if browser.find() is None:
        skip("not installed: chromium")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
