"""Instances of one stage on this host and on another one, on loopback. Usage: test_workers.py FOLDER_OF_PROGRAMS Everyday|Long|Campaign|Inference"""
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import PORT, World  # noqa: E402
from processes import wait_for  # noqa: E402
from worker_world import REMOTE_STAGES, check_whole, frames_of, hash_on_one_host, hosts_text, kill, rows, write_files  # noqa: E402
from seeds import seed  # noqa: E402

PROGRAMS = sys.argv[1]
PIPELINES = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "pipelines"))
SEED = seed(7)
SIZE = 1 << 16


class Case(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def begin(self, frames, delay=10, fps="60", **more):
        """Both hosts, after the first frames from b."""
        one, file = write_files(self.world, SIZE, delay, ["127.0.0.1"] * 2, PORT, **more)
        self.expected = hash_on_one_host(self.world, one, frames)
        self.frames = frames
        options = ("--frames", str(frames), "--fps", fps)
        coordinator, remote = self.world.coordinator(file, *options), self.world.remote(file, "b", *options)
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("work-done", coordinator)
        return coordinator, remote

    def whole(self, coordinator):
        self.assertEqual(coordinator.wait(60), 0, coordinator.text())
        check_whole(coordinator, self.frames, self.expected)


class Everyday(Case):
    def test_frames_go_to_both_hosts_and_come_in_order_while_one_after_the_other_is_killed(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        more = "carries = true\n"
        coordinator, remote = self.begin(360, of_all=more, of_sink="turned = true\n")
        self.assertEqual([len(rows(coordinator, "work")), len(rows(remote, "work"))], [2, 2])
        victims = [(coordinator, "work"), (coordinator, "work"), (coordinator, "source"), (coordinator, "sink"), *((remote, s) for s in REMOTE_STAGES)]
        dice.shuffle(victims)
        for host, stage in victims:
            time.sleep(dice.uniform(0.05, 0.25))
            wait_for(f"a process of {host.name}/{stage}", lambda h=host, s=stage: kill(h, dice, s))
        remote.supervisor_is_killed()
        coordinator.supervisor_is_killed()
        there = wait_for("frames of b behind the kills", lambda: frames_of(remote, "work-done"))
        self.whole(coordinator)
        self.assertEqual(remote.wait(30), 0, remote.text())
        self.assertGreater(remote.report()["frames"], 20, f"b made {there} frames by the last kill")


class Long(Case):
    def test_a_host_that_is_lost_for_good_does_not_fail_the_run(self):
        coordinator, remote = self.begin(240)
        remote.lose()
        self.whole(coordinator)

    def test_a_frame_that_the_other_host_gives_up_is_tried_again_and_its_account_is_its_own(self):
        coordinator, remote = self.begin(400, of_two="dies_at = 60\n")  # at position 60 of each ring, in the first four incarnations
        for _ in range(4):
            pid = wait_for("the instance here", lambda: rows(coordinator, "work")[0].get("pid"))
            os.kill(pid, signal.SIGKILL)
            wait_for("another one", lambda p=pid: rows(coordinator, "work")[0].get("pid") not in (None, p))
        coordinator.expect_log("the other host gave the frame up")
        self.whole(coordinator)
        self.assertEqual(remote.wait(30), 4, remote.text())

    def test_ctrl_c_ends_both_hosts_with_every_frame_that_was_begun(self):
        coordinator, remote = self.begin(600)
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        r = coordinator.report()
        self.assertEqual([r[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])


class Campaign(Long):
    """Too long for every change, and Long."""

    def test_frames_of_a_lost_host_go_to_an_instance_here_and_the_run_continues(self):
        coordinator, remote = self.begin(300)
        remote.lose()
        coordinator.expect_log("host b is lost .*frames of its instances go to other instances")
        before = frames_of(coordinator, "sink")
        wait_for("frames without b", lambda: frames_of(coordinator, "sink") > before + 20)
        remote.start()
        remote.has_frames("work-done", coordinator)
        self.whole(coordinator)
        self.assertEqual(remote.wait(30), 0, remote.text())

    def test_a_stopped_stage_there_gets_no_frame_and_the_run_continues(self):
        coordinator, remote = self.begin(300, of_work="frame_timeout_ms = 1000\n")
        self.assertEqual(remote.command("stop", "work").returncode, 0)
        coordinator.expect_log("was not answered within 3000 ms")
        before = frames_of(coordinator, "sink")
        wait_for("frames without b", lambda: frames_of(coordinator, "sink") > before + 20)
        self.assertEqual(remote.command("cont", "work").returncode, 0)
        made = frames_of(remote, "work-done")
        wait_for("frames of b again", lambda: frames_of(remote, "work-done") > made + 4)
        self.whole(coordinator)


class Inference(Case):
    """pipelines/inference.toml with two of its three workers on b."""

    def test_the_answers_of_two_hosts_are_those_of_one(self):
        # The stage's own process comes last: the stand-in for those of b has no weights to load for it.
        infer = os.path.abspath(os.path.join(PROGRAMS, "carousel-infer"))
        late = self.world.write("late", f'#!/bin/sh\n[ -z "$CAROUSEL_ATTACH" ] || sleep 1\nexec {infer} "$@"\n')
        os.chmod(late, 0o755)
        with open(os.path.join(PIPELINES, "inference.toml"), encoding="utf-8") as f:
            text = f.read().replace('"shapes.net"', f'"{PIPELINES}/shapes.net"').replace("standby = true", "standby = false")
        text = text.replace('run = "carousel-infer"', f'run = "{late}"')
        one = self.world.coordinator(self.world.write("one.toml", text.replace('out = ""', 'out = "one.txt"')), "--frames", "400").start()
        self.assertEqual(one.wait(60), 0, one.text())
        file = self.world.write("inference.toml", hosts_text(["127.0.0.1"] * 2, PORT)
                                + text.replace('out = ""', 'out = "two.txt"').replace("instances = 3", 'instances = 3\nhost = ["", "b", "b"]'))
        options = ("--frames", "400", "--fps", "100")
        coordinator, remote = self.world.coordinator(file, *options), self.world.remote(file, "b", *options)
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("infer-done", coordinator)
        dice = random.Random(SEED)
        for host, stage in ((remote, "infer"), (coordinator, "infer"), (remote, "infer-work")):
            wait_for(f"a process of {host.name}/{stage}", lambda h=host, s=stage: kill(h, dice, s))
            time.sleep(0.2)
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        self.assertGreater(remote.report()["frames"], 20)
        answers = []
        for name in ("one.txt", "two.txt"):
            with open(os.path.join(self.world.folder, name), "rb") as f:
                answers.append(f.read())
        self.assertEqual(len(answers[0]), 400 * 8)
        others = [n for n in range(400) if answers[0][8 * n:8 * n + 8] != answers[1][8 * n:8 * n + 8]]
        self.assertEqual(others, [], f"{answers[1]}\n{coordinator.text()}{remote.text()}")


if __name__ == "__main__":
    name = sys.argv.pop(2)
    unittest.main(argv=[sys.argv[0], name], verbosity=2)
