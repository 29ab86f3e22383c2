"""The leftovers of a run whose supervisor was killed. Usage: test_lost_runs.py FOLDER_OF_PROGRAMS
PIPELINES_FOLDER"""
import json

from live import Live, is_alive, main, os, signal, wait_for


class LostRuns(Live):
    def start(self, *more):
        """A background run whose fragment stage has printed a line; returns the pids: supervisor, stages."""
        self.up("--set", "supervisor_grace_s=0.3", *more, file=self.talking_pipeline("echo hello from $$ >&2"))
        wait_for("the stage's line", lambda: "hello from" in self.carousel("logs", "-p", self.name).stdout)
        wait_for("frames", lambda: (self.ps()["pipeline"]["frames"] or 0) > 3)
        state = self.ps()
        return state["pipeline"]["pid"], [s["pid"] for s in state["stages"]]

    def run_folder(self):
        return os.path.join(self.folder, "carousel", self.name)

    def kill_all(self, supervisor, stages):
        for pid in (supervisor, *stages):
            os.kill(pid, signal.SIGKILL)
        wait_for("their end", lambda: not any(is_alive(pid) for pid in (supervisor, *stages)))

    def check_kept(self, *words):
        logs = self.carousel("logs", "-p", self.name, *words)
        self.assertEqual(logs.returncode, 0, logs.stderr)
        self.assertIn("hello from", logs.stdout)
        self.assertRegex(logs.stderr, r"lost at .*display delivered \d+ frames; its supervisor \(pid \d+\) died")
        return logs.stdout

    def test_the_last_stage_keeps_logs_and_account_of_a_run_whose_supervisor_was_killed(self):
        supervisor, stages = self.start()
        os.kill(supervisor, signal.SIGKILL)
        wait_for("the end of the stages", lambda: not any(is_alive(pid) for pid in stages))
        self.assertFalse(os.path.exists(self.run_folder()))
        lines = self.check_kept()
        self.assertIn("the supervisor has ended", lines)  # written without a supervisor
        self.assertIn("fragment", self.carousel("logs", "fragment", "-p", self.name).stdout)
        listed = json.loads(self.carousel("ps", "--all", "--json").stdout)
        self.assertEqual((listed["running"], [r["name"] for r in listed["lost"]]), ([], [self.name]))
        account = listed["lost"][0]["account"]
        self.assertEqual(account["supervisor_pid"], supervisor)
        self.assertGreater(account["sinks"][0]["delivered"], 0)
        self.assertIn(f"(pid {supervisor}) died", self.carousel("ps", "--all").stdout)

    def test_clean_keeps_what_is_known_of_a_run_that_was_killed_as_a_whole(self):
        self.kill_all(*self.start())
        cleaned = self.carousel("clean")
        self.assertEqual(cleaned.returncode, 0, cleaned.stderr)
        self.assertFalse(os.path.exists(self.run_folder()))
        self.check_kept()
        self.assertEqual(self.carousel("clean").returncode, 0)
        self.check_kept()
        self.assertIn("removed lost run", self.carousel("clean", "--lost").stdout)
        self.assertEqual(self.carousel("logs", "-p", self.name).returncode, 2)

    def test_a_new_run_of_the_same_name_keeps_what_is_known_of_the_lost_one(self):
        self.kill_all(*self.start())
        self.up()
        self.assertNotIn("hello from", self.carousel("logs", "-p", self.name).stdout)
        self.check_kept("--lost")
        self.assertEqual(self.carousel("down", "-p", self.name).returncode, 0)


if __name__ == "__main__":
    main()
