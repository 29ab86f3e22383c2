"""Keys of `carousel top` on real pipelines. Usage: test_actions.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [class]"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from live import CAROUSEL, Live, signal, time, unittest, wait_for  # noqa: E402
from terminal import Terminal  # noqa: E402

DOWN, UP = "\x1b[B", "\x1b[A"


class Screen(Live):
    def open(self, columns=80, rows=24, *more):
        t = Terminal([CAROUSEL, "top", "-p", self.name, "--interval", "0.2", *more], self.environment, columns=columns, rows=rows)
        self.addCleanup(self.end, t)
        self.until(t, r"\? help")
        return t

    @staticmethod
    def end(t):
        try:
            os.kill(t.pid, signal.SIGKILL)
            os.waitpid(t.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(t.fd)

    def until(self, t, pattern):
        """The screen, as one text, as soon as it has the pattern."""
        def shown():
            text = "\n".join(t.screen())
            return text if re.search(pattern, text, re.MULTILINE) else None
        try:
            return wait_for(pattern, shown)
        except AssertionError as e:
            raise AssertionError("%s: %s\n%s" % (pattern, e, "\n".join(t.screen()))) from e

    def select(self, t, stage):
        for _ in range(40):
            if re.search(r"(?m)^> %s " % re.escape(stage), "\n".join(t.screen())):
                return
            t.press(DOWN)
        raise AssertionError("%s can't be selected:\n%s" % (stage, "\n".join(t.screen())))

    def quit(self, t):
        t.press("q")
        self.assertEqual(t.exit_code(), 0)
        self.assertTrue(t.restored())


class Actions(Screen):
    def test_a_confirmed_action_is_carried_out_and_a_cancelled_one_is_not(self):
        self.up()
        t = self.open()
        first = self.stage("fragment")["pid"]
        self.select(t, "fragment")
        for no in ("n", "\x1b", " ", "\n"):
            t.press("r")
            self.until(t, r"^restart fragment \(pid %d\)\? y/n$" % first)
            t.press(no)
            self.until(t, "^cancelled: restart fragment$")
        self.assertEqual((self.stage("fragment")["pid"], self.stage("fragment")["restarts"]), (first, 0))
        t.press("\n")
        self.until(t, r"^fragment \(running\): +p pause +r restart +x kill +d end")
        t.press("r")
        self.until(t, r"restart fragment .* y/n")
        t.press("y")
        wait_for("another process", lambda: self.stage("fragment")["pid"] not in (None, first))
        self.until(t, r"^> fragment +.* running ")
        t.press("x")
        self.until(t, r"^kill fragment .* y/n")
        t.press("y")
        wait_for("the kill", lambda: "SIGKILL" in (self.stage("fragment")["last_exit"] or ""))
        self.until(t, r"fragment .*SIGKILL")
        t.press("p")
        self.until(t, r"^stop fragment .* y/n")
        t.press("y")
        self.until(t, r"^> fragment +.*stopped ")
        self.assertEqual(self.stage("fragment")["state"], "stopped")
        t.press("p")
        self.until(t, r"^cont fragment .* y/n")
        t.press("y")
        self.until(t, r"^> fragment +.*running ")
        self.quit(t)

    def test_a_refusal_of_the_run_is_shown(self):
        self.up("--set", "supervisor_grace_s=60")
        t = self.open()
        self.select(t, "display")
        t.press("snosuch=1\n")
        self.until(t, "^error: .*nosuch")
        t.press("sexposure=2x")
        self.until(t, "^set KEY=VALUE: exposure=2x_$")
        t.press("\x7f\n")
        self.until(t, "^exposure = 2.0 from frame")
        t.press("s\n")
        self.until(t, r"^parameters of the pipeline: [^\n]*\n(.*\n)*exposure +2\.0")
        t.press("\x1b")
        self.until(t, "^> display")
        os.kill(self.ps()["pipeline"]["pid"], signal.SIGKILL)
        self.until(t, "no supervisor, 4 stages continue")
        t.press("ry")
        self.until(t, "^error: no pipeline (.*\n)*.* 4 of its stages continue")
        self.quit(t)
        self.up("--set", "supervisor_grace_s=60")   # adopts the stages, so that they can be ended

    def test_the_log_of_the_selected_stage_follows_it_and_help_closes_with_any_key(self):
        self.up(file=self.talking_pipeline('for k in 1 2 3; do echo "line $k of $$"; done'))
        t = self.open()
        self.select(t, "fragment")
        t.press("l")
        text = self.until(t, r"line 3 of \d+$")
        command = subprocess.run(["ps", "--ppid", str(t.pid), "-o", "args="], capture_output=True, text=True, check=True).stdout
        self.assertIn(" logs -p %s " % self.ps()["pipeline"]["run_id"], command)   # by id: the next run may have the name
        self.assertRegex(text, r"^log of fragment: 1 to \d+ of \d+")
        first = self.stage("fragment")["pid"]
        os.kill(first, signal.SIGKILL)
        wait_for("another process", lambda: self.stage("fragment")["pid"] not in (None, first))
        self.until(t, r"line 3 of %d$" % self.stage("fragment")["pid"])
        t.press("q")
        self.until(t, "^> fragment")
        t.press("?")
        text = self.until(t, "any key closes this help")
        for word in ("quarantined", "backoff", "P99 MS"):
            self.assertIn(word, text)
        t.press("x")
        self.assertNotIn("y/n", self.until(t, "^> fragment"))
        self.quit(t)


class Sizes(Screen):
    def test_the_selection_stays_visible_in_any_size_and_the_terminal_is_restored(self):
        self.up()
        t = self.open()
        for columns, rows in ((40, 6), (20, 3), (120, 40), (80, 24)):
            t.resize(columns, rows)
            wait_for("its size", lambda: len(t.screen()) == rows and max(map(len, t.screen())) <= columns)
            for _ in range(3):
                t.press("j")
            if rows > 4:
                self.until(t, "^> display")
            for _ in range(3):
                t.press(UP)
            if rows > 4:
                self.until(t, "^> geometry")
        t.press("?")
        self.until(t, "any key closes")
        os.kill(t.pid, signal.SIGTERM)
        self.assertEqual(t.exit_code(), 143)
        self.assertTrue(t.restored())
        t = self.open()
        t.press("l")
        self.until(t, "^log of geometry")
        os.kill(t.pid, signal.SIGABRT)
        self.assertEqual(t.exit_code(), -signal.SIGABRT)
        self.assertTrue(t.restored())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
