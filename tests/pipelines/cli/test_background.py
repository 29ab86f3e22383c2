"""`carousel up -d` and `carousel logs` on real pipelines. Usage: test_background.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import pty
import re
import shlex

from live import ANSI, CAROUSEL, PIPELINES, PROGRAMS, SMALL, Live, is_alive, main, os, signal, subprocess, wait_for


class Background(Live):
    def test_up_d_returns_when_all_are_ready_and_outlives_its_terminal(self):
        words = [CAROUSEL, "up", os.path.join(PIPELINES, "demo.toml"), "-d", "--name", self.name, *SMALL]
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(words[0], words, self.environment)
        output = b""
        try:
            while part := os.read(terminal, 4096):
                output += part
        except OSError:  # the terminal is closed with its last process
            pass
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, output)
        output = output.decode()
        self.assertIn("4 processes ready", output)
        self.assertIn(f"carousel down -p {self.name}", output)
        state = self.ps()
        self.assertEqual({s["state"] for s in state["stages"]}, {"running"})
        pid = state["pipeline"]["pid"]
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            session, tty = f.read().rsplit(")", 1)[1].split()[3:5]
        self.assertEqual((int(session), int(tty)), (pid, 0))  # a separate session, without a terminal
        self.assertIn(os.path.join(self.folder, "carousel", self.name), output)
        self.assertEqual(self.carousel("down").returncode, 0)
        self.assertFalse(is_alive(pid))

    def test_up_d_reports_a_failed_pipeline_with_the_tail_of_its_log(self):
        file = self.talking_pipeline("echo no luck today >&2; exit 9")
        result = self.carousel("up", file, "-d", "--name", self.name, *SMALL, "--set", "fragment.restart=no")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("has failed with exit code", result.stderr)
        self.assertIn("no luck today", result.stderr)
        self.assertEqual(self.carousel("ps").returncode, 2)
        self.assertIn("no luck today", self.carousel("logs", "-p", self.name, "fragment").stdout)
        bad = self.carousel("up", os.path.join(PIPELINES, "demo.toml"), "-d", "--set", "vertex.nonsense=1")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("unknown key", bad.stderr)

    def test_ctrl_c_while_up_d_waits_ends_the_pipeline(self):
        file = self.talking_pipeline("sleep 30")
        process = subprocess.Popen([CAROUSEL, "up", file, "-d", "--name", self.name, *SMALL], env=self.environment, stderr=subprocess.PIPE, text=True)
        pid = wait_for("the pipeline", lambda: self.carousel("ps", "--json").returncode == 0 and self.ps()["pipeline"]["pid"])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(40), 130)
        self.assertIn("interrupted", process.stderr.read())
        process.stderr.close()
        self.assertFalse(is_alive(pid))

    def test_a_stop_by_no_command_is_a_hang_and_affects_only_this_run(self):
        self.up("--set", "frame_timeout_ms=500")
        before = {s["name"]: s["pid"] for s in self.ps()["stages"]}
        output = self.carousel("kill", "fragment", "-s", "STOP", "-p", self.name)
        self.assertEqual(output.stdout, f"sent signal 19 (STOP) to fragment (pid {before['fragment']})\n", output.stderr)
        wait_for("fragment replaced", lambda: self.stage("fragment")["restarts"] == 1 and self.stage("fragment")["state"] == "running", 20)
        self.assertEqual({s["name"] for s in self.ps()["stages"] if s["pid"] != before[s["name"]]}, {"fragment"})
        self.assertEqual(self.carousel("down", "-p", self.name).returncode, 0)

    def test_up_takes_files_and_stages(self):
        self.up()
        self.assertEqual(self.carousel("down", "fragment").returncode, 0)
        wait_for("down", lambda: self.stage("fragment")["state"] == "down")
        self.assertEqual(self.carousel("up", "fragment").returncode, 0)
        wait_for("running", lambda: self.stage("fragment")["state"] == "running")
        wrong = self.carousel("kill", "fragmnt")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('did you mean "fragment"?', wrong.stderr)
        second = self.carousel("up", os.path.join(PIPELINES, "demo.toml"), "-d", "--name", self.name, *SMALL)
        self.assertEqual(second.returncode, 2)
        self.assertIn("is already running", second.stderr)

    def test_the_hint_at_the_end_of_a_run_can_be_typed_as_it_stands(self):
        path = self.environment["PATH"].split(":", 1)[1]
        for folder in (os.path.dirname(PROGRAMS), PROGRAMS, self.folder):
            result = self.carousel("run", os.path.join(PIPELINES, "demo.toml"), *SMALL, "--frames", "3", cwd=folder,
                                   env={**self.environment, "PATH": path})
            hint = re.search(r"try in another terminal: (.*) kill \w+ -p demo", result.stderr)
            self.assertTrue(hint, result.stderr)
            tried = subprocess.run(["sh", "-c", hint[1] + " --version"], cwd=folder, env={**self.environment, "PATH": path},
                                   capture_output=True, text=True, check=False)
            self.assertEqual(tried.returncode, 0, hint[0] + tried.stderr)
            self.assertLess(len(shlex.split(hint[1])), 2)


class Logs(Live):
    def test_lines_are_prefixed_chosen_timed_and_survive_a_crash(self):
        self.up(file=self.talking_pipeline("echo I am $$"))
        first = self.stage("fragment")["pid"]
        self.carousel("kill", "fragment")
        wait_for("a successor", lambda: self.stage("fragment")["pid"] not in (None, first) and self.stage("fragment")["state"] == "running")
        second = self.stage("fragment")["pid"]
        lines = wait_for("both lines", lambda: (out := self.carousel("logs", "fragment").stdout.splitlines())[1:] and out)
        self.assertEqual(lines, [f"fragment | I am {first}", f"fragment | I am {second}"])
        everything = self.carousel("logs").stdout
        self.assertRegex(everything, rf"(?m)^carousel \| fragment \(pid {first}\) died: (signal 9|killed)")  # it may be reported before the process is reaped
        wait_for("the time that it took", lambda: re.search(rf"(?m)^carousel \| fragment is back as pid {second} after [\d.]+ m?s$", self.carousel("logs").stdout))
        self.assertEqual(self.carousel("logs", "-n", "1", "fragment").stdout, f"fragment | I am {second}\n")
        timed = self.carousel("logs", "--timestamps", "fragment", "carousel").stdout.splitlines()
        times = [re.match(r"\w+ +\| (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ", line)[1] for line in timed]
        self.assertEqual(times, sorted(times))
        since = self.carousel("logs", "--since", times[-1].replace("Z", "9Z"), "--json").stdout
        self.assertTrue(all(json.loads(line)["time"] >= times[-1] for line in since.splitlines()))
        self.assertEqual(self.carousel("logs", "--since", "2100-01-01T00:00:00Z").stdout, "")
        self.assertIn('did you mean "fragment"', self.carousel("logs", "fragmnt").stderr)
        self.assertNotIn("\x1b", everything)

    def test_f_follows_until_the_end_and_the_lines_stay_until_they_are_cleaned(self):
        self.up(file=self.talking_pipeline("echo I am $$"))
        follower = subprocess.Popen([CAROUSEL, "logs", "-f"], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.stage("fragment")["pid"]
        self.carousel("restart", "fragment")
        wait_for("a successor", lambda: self.stage("fragment")["pid"] not in (None, first) and self.stage("fragment")["state"] == "running")
        second = self.stage("fragment")["pid"]
        self.carousel("down")
        out, err = follower.communicate(timeout=20)
        self.assertEqual((follower.returncode, err), (0, ""))
        for text in (f"I am {first}", f"I am {second}", "lost 0, repeated 0, torn 0"):
            self.assertEqual(out.count(text), 1, out)
        self.assertEqual(self.carousel("logs").stdout, out)  # the only run there is or was
        self.assertEqual(self.carousel("logs", "-f", "-p", self.name).stdout, out)
        self.assertIn("its run has ended", self.carousel("clean").stdout)
        gone = self.carousel("logs", "-p", self.name)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("--keep-logs", gone.stderr)

    def test_a_foreground_run_deletes_its_logs_unless_requested_to_keep_them(self):
        words = ["run", os.path.join(PIPELINES, "demo.toml"), "--name", self.name, *SMALL, "--frames", "5"]
        self.assertEqual(self.carousel(*words).returncode, 0)
        self.assertEqual(os.listdir(os.path.join(self.folder, "carousel")), [])
        self.assertEqual(self.carousel(*words, "--keep-logs").returncode, 0)
        self.assertIn("5 frames", self.carousel("logs").stdout)
        self.assertEqual(self.carousel(*words).returncode, 0)  # the next run of that name takes its place
        self.assertEqual(os.listdir(os.path.join(self.folder, "carousel")), [])

    def test_on_a_terminal_prefixes_are_coloured_unless_disabled(self):
        self.up(file=self.talking_pipeline("echo I am $$"))

        def on_terminal(*words):
            child, terminal = pty.fork()
            if child == 0:
                os.execvpe(CAROUSEL, [CAROUSEL, *words], self.environment)
            out = b""
            try:
                while part := os.read(terminal, 4096):
                    out += part
            except OSError:
                pass
            os.close(terminal)
            os.waitpid(child, 0)
            return out.decode()

        coloured = on_terminal("logs", "fragment")
        self.assertIn("\x1b[", coloured)
        self.assertEqual(ANSI.sub("", coloured), on_terminal("logs", "fragment", "--no-color"))


if __name__ == "__main__":
    main()
