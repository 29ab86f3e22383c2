"""The page in a headless Chromium during incidents, in windows of several widths.
Usage: test_web_page.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [class]"""
import os
import signal
import socket
import sys
import unittest

import browser
from web_rig import Rig, wait_for
from processes import skip  # web_rig has made it findable

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
STREAMS = 16   # site::max_streams


class Dashboard(Rig):
    def open(self, dashboard, width=1440, height=1000):
        b = browser.Browser(browser.find(), width, height)
        self.addCleanup(b.close)
        b.open(f"http://127.0.0.1:{dashboard.port}/?token={dashboard.token}")
        wait_for("buttons", lambda: b.value("document.querySelectorAll('#rows button:enabled').length") == 12, 60)
        return b

    @staticmethod
    def text(b, element):
        return b.value(f"document.getElementById('{element}').textContent")


class Down(Dashboard):
    def test_a_stage_that_is_down_is_shown_as_such_and_up_starts_it(self):
        _, dashboard = self.running_dashboard()
        b = self.open(dashboard)
        self.assertEqual(b.value("document.getElementById('phase').className"), "pill running")
        self.assertEqual(dashboard.act("fragment", "down")[0], 200)
        banner = wait_for("the banner", lambda: not b.value("document.getElementById('banner').hidden") and self.text(b, "banner"))
        self.assertRegex(banner, r"^fragment \(pid \d+\) was ended by `carousel down`; the stages that need its frames wait until `carousel up fragment`\.$")
        wait_for("the state", lambda: self.text(b, "phase") == "waiting: fragment is down")
        self.assertEqual(b.value("document.getElementById('phase').className"), "pill waiting")
        wait_for("the problem", lambda: "fragment is down" in self.text(b, "problems"))
        self.assertEqual(dashboard.ask("/healthz")[:2], (200, b"fragment is down, and the others wait for it\n"))
        self.assertEqual(dashboard.ask("/readyz")[:2], (503, b"fragment is down, and the others wait for it\n"))
        self.assertRegex(dashboard.ask("/metrics")[1].decode(), r"(?m)^carousel_frames_can_move\{.*\} 0$")
        wait_for("its button", lambda: b.value("[...document.querySelectorAll('[data-stage=fragment]')].map(x => x.dataset.verb).join()") == "up")
        b.value("document.querySelector('[data-stage=fragment]').click()")
        wait_for("green again", lambda: b.value("document.getElementById('phase').className") == "pill running")
        wait_for("no problem", lambda: b.value("document.getElementById('problems').hidden"))
        self.assertEqual(dashboard.act("vertex", "stop")[0], 200)
        wait_for("the pause", lambda: b.value("document.getElementById('phase').className") == "pill paused")


class Reopened(Dashboard):
    def test_an_open_page_is_whole_again_when_its_server_is_back(self):
        run, dashboard = self.running_dashboard()
        b = self.open(dashboard)
        wait_for("the picture", lambda: b.value("document.getElementById('live').naturalWidth") == 320)
        wait_for("one viewer", lambda: dashboard.json()["picture"]["watchers"] == 1)
        web = self.dashboard_pid(run)
        os.kill(web, signal.SIGSTOP)   # a server that hangs answers nothing
        wait_for("no answer", lambda: self.text(b, "phase") == "no answer")
        self.assertEqual(b.value("document.querySelectorAll('button:enabled, fieldset:enabled').length"), 0)
        os.kill(web, signal.SIGCONT)
        wait_for("buttons", lambda: b.value("document.querySelectorAll('#rows button:enabled').length") == 12)
        os.kill(web, signal.SIGTERM)   # the server closes its streams cleanly, for which an image has no event
        wait_for("another process", lambda: self.dashboard_pid(run) not in (None, web))
        wait_for("its viewer is back", lambda: self.answers(dashboard) and dashboard.json()["picture"]["watchers"] == 1)
        wait_for("buttons", lambda: b.value("document.querySelectorAll('#rows button:enabled').length") == 12)
        wait_for("its picture", lambda: b.value("document.getElementById('no-picture').hidden"))
        old = dashboard.process("vertex")["pid"]
        b.confirm("[data-verb=kill][data-stage=vertex]")
        wait_for("its successor", lambda: dashboard.process("vertex")["pid"] not in (None, old))


class Narrow(Dashboard):
    def test_every_button_lies_inside_the_window_and_takes_the_focus(self):
        _, dashboard = self.running_dashboard()
        for width in (390, 800, 1440):
            b = self.open(dashboard, width, 800)
            self.assertEqual(b.value("document.documentElement.scrollWidth <= innerWidth"), True, width)
            outside = """[...document.querySelectorAll('#rows button')].filter(x => {
                scrollTo(0, x.getBoundingClientRect().top + scrollY - innerHeight / 2);   // down the page, and no table to the side
                x.focus({preventScroll: true});
                const r = x.getBoundingClientRect(), hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
                return r.left < 0 || r.right > innerWidth || document.activeElement !== x || hit !== x;
            }).map(x => x.dataset.stage + ' ' + x.dataset.verb)"""
            self.assertEqual(b.value(outside), [], width)


class Seventeenth(Dashboard):
    def test_one_viewer_too_many_is_shown_why_and_snapshots(self):
        _, dashboard = self.running_dashboard()
        others = [socket.create_connection(("127.0.0.1", dashboard.port)) for _ in range(STREAMS)]
        for s in others:
            self.addCleanup(s.close)
            s.sendall(b"GET /stream.mjpg HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for("all places are taken", lambda: dashboard.json()["picture"]["watchers"] == STREAMS)
        b = self.open(dashboard)
        wait_for("the reason", lambda: "16 viewers receive the live picture, which is the limit" in self.text(b, "no-picture"))
        wait_for("a snapshot", lambda: b.value("document.getElementById('live').naturalWidth") == 320)
        others[0].close()
        wait_for("its own stream", lambda: dashboard.json()["picture"]["watchers"] == STREAMS and "/stream.mjpg" in b.value("document.getElementById('live').src"))
        wait_for("no reason any more", lambda: b.value("document.getElementById('no-picture').hidden"))


if __name__ == "__main__":
    if browser.find() is None:
        skip("not installed: chromium")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
