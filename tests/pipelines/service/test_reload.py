"""A running pipeline takes over a changed file (`carousel reload`) and another version (`carousel upgrade`).
Usage: test_reload.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [class]"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_service import DEMO, CAROUSEL, Rig, SMALL, is_alive, wait_for  # noqa: E402
from live import PROGRAMS, seeds  # noqa: E402

COMPLETE = "lost 0, repeated 0, torn 0"


class Changing(Rig):
    """The demo, from a file that the test changes."""

    def setUp(self):
        super().setUp()
        with open(DEMO, encoding="utf-8") as f:
            self.text = f.read()
        self.file = self.write("changing.toml", self.text)
        self.pipeline = ("-p", self.name)

    def begin(self, *more, file=None, **environment):
        before = len(self.manager.values("READY"))
        run = self.start("--set", "supervisor_grace_s=30", *more, file=file or self.file, **environment)
        wait_for("READY=1", lambda: len(self.manager.values("READY")) > before)
        return run

    def has_undelivered(self):
        now = self.ps()
        source = next(s for s in now["stages"] if s["name"] == "geometry")
        return (source["commits"] or 0) > (now["pipeline"]["frames"] or 0)

    def change(self, *pairs):
        for old, new in pairs:
            self.assertEqual(self.text.count(old), 1, old)
            self.text = self.text.replace(old, new)
        self.write("changing.toml", self.text)

    def pids(self):
        return {s["name"]: s["pid"] for s in self.ps()["stages"]}

    def reload(self, *words):
        done = self.carousel("reload", *self.pipeline, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def run_folder(self):
        return os.path.join(self.folder, "carousel", self.name)

    def plan(self):
        with open(os.path.join(self.run_folder(), "pipeline.json"), encoding="utf-8") as f:
            return json.load(f)

    def state(self):
        with open(os.path.join(self.run_folder(), "state.json"), encoding="utf-8") as f:
            return f.read()

    def prefix(self):
        """A second installation of the programs that the demo needs."""
        folder = os.path.join(self.folder, "second prefix", "bin")
        os.makedirs(folder)
        for program in [CAROUSEL, *(os.path.join(PROGRAMS, f"carousel-{n}") for n in ("alloc", "geometry", "vertex", "fragment", "display"))]:
            shutil.copy(program, folder)
        for library in glob.glob(os.path.join(PROGRAMS, "*.so*")):
            shutil.copy(library, folder)
        return os.path.dirname(folder)

    def programs(self):
        return {name: os.readlink(f"/proc/{pid}/exe") for name, pid in self.pids().items()}


class Reload(Changing):
    def test_keys_are_taken_over_live_and_only_stages_whose_own_settings_changed_are_restarted(self):
        run = self.begin()
        before = self.pids()
        self.change(('restart = "always"', 'restart = "on-failure"\nframe_timeout_ms = 3000'), ("spin = 0.01", "spin = 0.02"))
        reply = self.reload(self.file)
        self.assertEqual({(k["stage"], k["key"], json.dumps(k["from"]), json.dumps(k["to"]), k["live"]) for k in reply["keys"]},
                         {("fragment", "restart", '"always"', '"on-failure"', True), ("fragment", "frame_timeout_ms", "2000", "3000", True),
                          ("", "parameters.spin", "0.01", "0.02", True)})
        self.assertEqual((reply["restarted"], reply["pending"], self.pids()), ([], [], before))
        self.assertIn("0.02", self.carousel("set", *self.pipeline).stdout)
        self.change(("keep = 100", "keep = 7"))
        reply = self.reload()
        self.assertEqual([(k["stage"], k["key"], k["live"]) for k in reply["keys"]], [("display", "settings.keep", False)])
        after = self.pids()
        self.assertEqual([(s["stage"], s["old_pid"], s["pid"], s["ready"]) for s in reply["restarted"]],
                         [("display", before["display"], after["display"], True)])
        self.assertEqual({n for n in after if after[n] != before[n]}, {"display"})
        self.assertEqual(self.reload()["keys"], [])
        reloads = [m for _, m in self.manager.receive() if "RELOADING" in m]
        self.assertEqual(len(reloads), 3)
        self.assertTrue(all(int(m["MONOTONIC_USEC"]) > 0 for m in reloads))
        wait_for("four READY=1", lambda: self.manager.values("READY") == ["1"] * 4)
        run.kill()
        run.communicate(timeout=60)
        second = self.begin()                             # the control block has the new timeout: nothing is repaired
        self.assertEqual(self.pids(), after)
        output = self.end(second)
        self.assertNotIn("frame_timeout", output)
        self.assertIn(COMPLETE, output)

    def test_a_relative_program_is_found_from_every_working_directory(self):
        os.symlink(PROGRAMS, os.path.join(self.folder, "programs"))
        self.change(('run = "carousel-display"', 'run = "programs/carousel-display"'))
        run = self.begin(file=os.path.basename(self.file))
        self.change(("keep = 100", "keep = 7"))
        done = self.carousel("reload", os.path.relpath(self.file, "/usr"), *self.pipeline, "--json", cwd="/usr")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([k["key"] for k in json.loads(done.stdout)["keys"]], ["settings.keep"])
        self.assertIn(COMPLETE, self.end(run))

    def test_a_refused_file_changes_nothing_and_every_key_is_listed(self):
        run = self.begin()
        before, plan = self.pids(), self.plan()
        self.change(("keep = 100", "keep = 7"), ("max_attempts = 3 ", "max_attempts = 4\nin_flight = 2 "), ('mesh = "bumpy-sphere"', 'mesh = "torus-knots"'))
        done = self.carousel("reload", self.file, *self.pipeline)
        self.assertEqual(done.returncode, 2, done.stderr)
        for text in ("nothing was changed", "stage fragment: max_attempts: 3 -> 4", 'stage fragment: in_flight: "auto" -> 2',
                     'stage geometry: settings.mesh: "bumpy-sphere" -> "torus-knots" (the stage fills the asset', "--drain"):
            self.assertIn(text, done.stderr)
        self.assertNotIn("keep", done.stderr)
        self.change(('inputs = ["fragment"]', 'inputs = ["fragment"]\nnope = 1'))
        self.assertEqual(self.carousel("reload", *self.pipeline).returncode, 2)
        self.assertEqual((self.pids(), self.plan()), (before, plan))
        self.assertIn(COMPLETE, self.end(run))

    def test_a_supervisor_that_dies_in_a_reload_leaves_the_old_plan_or_the_new_one(self):
        for point, keep in (("reload_intended", 100), ("plan_replaced", 7)):
            with self.subTest(point=point):
                self.text = self.text.replace("keep = 7", "keep = 100")
                self.change()
                plan = self.write(point, f"supervisor {point} kill 1\n")
                first = self.begin(CAROUSEL_CRASH_PLAN=plan)
                before = self.pids()
                self.change(("keep = 100", "keep = 7"))
                client = subprocess.Popen([CAROUSEL, "reload", *self.pipeline], env=self.environment, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True)
                self.addCleanup(client.stdout.close)
                first.communicate(timeout=60)
                self.assertEqual(first.returncode, -signal.SIGKILL)
                second = self.start("--set", "supervisor_grace_s=30", file=self.file)   # the file has the new text
                output = client.communicate(timeout=60)[0]
                self.assertEqual(client.returncode, 0 if keep == 7 else 2, output)
                wait_for("the reload's end", lambda: '"reload"' not in self.state())
                stage = next(s for s in self.plan()["pipeline"]["stages"] if s["name"] == "display")
                self.assertEqual(stage["settings"]["keep"], keep)
                after = self.pids()
                self.assertEqual({n for n in after if after[n] != before[n]}, {"display"} if keep == 7 else set())
                self.assertEqual(self.reload()["keys"] == [], keep == 7)
                self.assertIn(COMPLETE, self.end(second))


class Upgrade(Changing):
    def test_stages_and_then_the_supervisor_are_replaced_by_the_programs_of_a_second_prefix(self):
        run = self.begin("--fresh")                       # does not apply to the run that the new program adopts
        before, prefix = self.pids(), self.prefix()
        done = self.carousel("upgrade", *self.pipeline, "--prefix", prefix, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        after = self.pids()
        self.assertEqual([(s["stage"], s["old_pid"], s["pid"], s["ready"]) for s in json.loads(done.stdout)["restarted"]],
                         [(n, before[n], after[n], True) for n in before])
        self.assertEqual({os.path.dirname(p) for p in self.programs().values()}, {os.path.join(prefix, "bin")})
        self.assertEqual(os.readlink(f"/proc/{run.pid}/exe"), os.path.join(prefix, "bin", "carousel"))
        run.kill()                                        # a service manager starts the first version again
        run.communicate(timeout=60)
        second = self.start("--set", "supervisor_grace_s=30", file=self.file)
        wait_for("the adoption", lambda: self.ps().get("pipeline", {}).get("pid") == second.pid)
        self.assertEqual(self.pids(), after)
        self.assertEqual(self.carousel("kill", "vertex", *self.pipeline).returncode, 0)
        wait_for("the successor of vertex", lambda: self.pids()["vertex"] not in (None, after["vertex"]))
        self.assertEqual(os.path.dirname(self.programs()["vertex"]), os.path.join(prefix, "bin"))
        self.assertIn(COMPLETE, self.end(second))

    def test_a_drained_run_continues_at_the_next_frame_with_a_changed_file(self):
        out = os.path.join(self.folder, "pictures")
        self.change(('out = "frame_%05d.png"', f'out = "{out}/frame_%05d.rgba"'), ("keep = 100", "keep = 0"))
        options = [w for w in SMALL if w not in ("--out", "")]
        run = subprocess.Popen([CAROUSEL, "run", self.file, "--name", self.name, *options], cwd=self.folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**self.environment, "NOTIFY_SOCKET": self.manager.path})
        self.addCleanup(self.kill, run)
        self.manager.wait("READY", "1")
        wait_for("pictures", lambda: len(glob.glob(out + "/*.rgba")) > 10)
        before = self.pids()
        self.change(("max_attempts = 3 ", "max_attempts = 4 "))
        prefix = self.prefix()
        done = self.carousel("upgrade", *self.pipeline, "--drain", "--prefix", prefix)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(os.readlink(f"/proc/{run.pid}/exe"), os.path.join(prefix, "bin", "carousel"))
        self.assertFalse(set(self.pids().values()) & set(before.values()))
        self.assertEqual(self.manager.values("STOPPING"), [])
        count = len(glob.glob(out + "/*.rgba"))
        wait_for("more pictures", lambda: len(glob.glob(out + "/*.rgba")) > count + 10)
        output = self.end(run)
        self.assertEqual(output.count(COMPLETE), 2, output)
        numbers = sorted(int(os.path.basename(p)[6:-5]) for p in glob.glob(out + "/*.rgba"))
        self.assertEqual(numbers, list(range(len(numbers))))

    def test_a_request_to_end_a_run_that_is_drained_cancels_its_continuation(self):
        run = self.begin()
        self.assertEqual(self.carousel("down", "display", *self.pipeline).returncode, 0)
        wait_for("a frame for which the drain waits", self.has_undelivered)
        client = subprocess.Popen([CAROUSEL, "upgrade", *self.pipeline, "--drain"], env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        self.addCleanup(client.stdout.close)
        wait_for("the drain", lambda: self.ps()["pipeline"]["state"] == "stopping")
        self.assertIn("display: down", client.stdout.readline())
        run.send_signal(signal.SIGTERM)
        wait_for("the request", lambda: "does not continue the run" in self.carousel("logs", *self.pipeline).stdout)
        self.assertEqual(self.carousel("up", "display", *self.pipeline).returncode, 0)
        self.assertIn(COMPLETE, run.communicate(timeout=60)[1])
        self.assertIn("was not continued", client.communicate(timeout=60)[0])
        self.assertEqual((run.returncode, client.returncode), (0, 2))


class Kills(Changing):
    """Stages and the supervisor are killed at random while the pipeline is reloaded and upgraded."""

    def test_reloads_and_upgrades_under_kills_lose_repeat_and_tear_nothing(self):
        seed, rounds = seeds.seed(), seeds.scaled(6)
        print(f"seed {seed}", flush=True)
        chance = random.Random(seed)
        places = [None, self.prefix()]
        run, kept, began = self.begin(), 100, time.monotonic()
        for k in range(rounds):
            keep = chance.randrange(101, 1000)
            self.change((f"keep = {kept}", f"keep = {keep}"))
            kept = keep
            words = ["reload", *self.pipeline] if k % 2 == 0 else ["upgrade", *self.pipeline, "--prefix", places[k // 2 % 2] or PROGRAMS]
            client = subprocess.Popen([CAROUSEL, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(chance.random() * 0.5)
            victim = chance.choice(["supervisor", "geometry", "vertex", "fragment", "display"])
            if victim == "supervisor":
                run.kill()
                run.communicate(timeout=60)
                run = self.start("--set", "supervisor_grace_s=30", file=self.file)
            else:
                self.carousel("kill", victim, *self.pipeline)
            try:
                output = client.communicate(timeout=120)[0]
            except subprocess.TimeoutExpired:
                self.fail(f"{words[0]} does not end: " + self.carousel("ps", *self.pipeline).stdout + self.carousel("logs", *self.pipeline).stdout[-4000:])
            print(f"{time.monotonic() - began:.1f} s", k, words[0], "kill", victim, "code", client.returncode, output.strip().split("\n")[-1], flush=True)
            wait_for("an answer of the supervisor", lambda: self.carousel("ps", *self.pipeline).returncode == 0)
            wait_for("the end of the work", lambda: '"reload"' not in self.state())
            wait_for("all stages", lambda: all(s["state"] == "running" for s in self.ps()["stages"]))
            if words[0] == "reload":   # a killed supervisor leaves the old plan, or the new one
                self.reload()
            stage = next(s for s in self.plan()["pipeline"]["stages"] if s["name"] == "display")
            self.assertEqual(stage["settings"]["keep"], keep if words[0] == "reload" else stage["settings"]["keep"])
            if words[0] == "upgrade":
                self.assertEqual(len({os.path.dirname(p) for p in self.programs().values()}), 1)
        self.assertIn(COMPLETE, self.end(run))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
