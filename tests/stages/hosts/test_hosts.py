"""One pipeline file over hosts, each with its own supervisor, on loopback. Usage: test_hosts.py FOLDER_OF_PROGRAMS Everyday|Long"""
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, HOSTS, PORT, SINK, SOURCE, World  # noqa: E402
from link_pair import ledger, lose_run  # noqa: E402
from processes import wait_for  # noqa: E402
from seeds import seed  # noqa: E402

PROGRAMS = sys.argv[1]
SEED = seed(7)
SIZE = 1 << 16


class Case(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def file(self, name="chain", more="", source="", host=""):
        """source here, sink on b; keys of the sink, of the source and of [hosts.b]."""
        return self.world.write(name + ".toml", SOURCE.format(bytes=SIZE) + source
                                + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"\n' + more)
                                + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more=host))

    def hash_on_one_host(self, frames, source=""):
        one = self.world.coordinator(self.world.write("one.toml", SOURCE.format(bytes=SIZE) + source + SINK.format(name="sink", of="source", bytes=SIZE, more="")))
        self.assertEqual(one.start("--frames", str(frames)).wait(), 0, one.text())
        return one.report()["image_hash"]

    def whole(self, coordinator, remote, frames):
        for host in (coordinator, remote):
            r = host.report()
            self.assertEqual([r[k] for k in ("lost", "repeated", "torn", "frames")], [0, 0, 0, frames], host.text()[-3000:])
        self.assertEqual(coordinator.report()["hosts"]["b"]["image_hash"], remote.report()["image_hash"])


class Everyday(Case):
    def test_one_file_runs_on_two_hosts_with_kills_of_stages_and_both_supervisors(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        file = self.file()
        options = ("--frames", "240", "--fps", "60")
        coordinator, remote = self.world.coordinator(file, *options), self.world.remote(file, "b", *options)
        coordinator.start()
        coordinator.expect_log(r"waiting for host b .*carousel host --file .*chain.toml --as b --device cpu --frames 240 --fps 60")
        remote.start()
        remote.has_frames("sink", coordinator)
        victims = [(coordinator, "source"), (coordinator, "source-to-b"), (remote, "source-from-here"), (remote, "sink")]
        dice.shuffle(victims)
        for host, stage in victims:
            time.sleep(dice.uniform(0.05, 0.3))
            wait_for(f"a process of {stage}", lambda h=host, s=stage: h.kill(s))
        remote.supervisor_is_killed()
        coordinator.supervisor_is_killed()
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        self.whole(coordinator, remote, 240)
        self.assertEqual(remote.report()["image_hash"], self.hash_on_one_host(240))

    def test_ctrl_c_on_either_host_ends_both_with_every_frame_that_was_begun(self):
        for name, presses in (("from_near", 0), ("from_far", 1)):
            with self.subTest(name):
                file = self.file(name)
                coordinator, remote = self.world.coordinator(file, "--fps", "60"), self.world.remote(file, "b", "--fps", "60")
                coordinator.start()
                coordinator.expect_log("waiting for host b")
                remote.start()
                remote.has_frames("sink", coordinator)
                (coordinator, remote)[presses].interrupt()
                self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
                self.whole(coordinator, remote, remote.report()["frames"])
                if presses:
                    self.assertIn("interrupted on host b", coordinator.text())

    def test_what_differs_between_the_hosts_is_named_and_refused(self):
        file = self.file()
        coordinator, remote = self.world.coordinator(file, "--frames", "10"), self.world.remote(file, "b", "--frames", "11")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        self.assertEqual(coordinator.wait(), 2)
        self.assertIn("frames is 11 there and 10 here", coordinator.text())
        remote.expect_log("frames is 1[01] there and 1[01] here")
        self.assertIsNone(remote.process.poll())  # the host waits for a coordinator that fits
        other = self.world.coordinator(file, "--frames", "11")
        other.start()
        self.assertEqual([other.wait(), remote.wait()], [0, 0], other.text() + remote.text())

    def test_a_run_that_begins_in_the_middle_does_so_on_all_hosts(self):
        file = self.file()
        coordinator, remote = self.world.coordinator(file, "--frames", "60", "--first", "20"), self.world.remote(file, "b", "--frames", "60", "--first", "30")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        self.assertEqual(coordinator.wait(), 2)
        self.assertIn("it was started with --first 30, but this run begins with frame 20", coordinator.text())
        remote.expect_log("the coordinator's run begins with frame 20, but --first 30 was given here")
        remote.end()
        coordinator, remote = self.world.coordinator(file, "--frames", "60", "--first", "20"), self.world.remote(file, "b", "--frames", "60")
        coordinator.start()
        remote.start()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.assertEqual([(h.report()["frames"], h.report()["lost"], h.report()["first"]) for h in (coordinator, remote)], [(60, 0, 20)] * 2)

    def test_a_wrong_token_is_reported_and_lets_no_frame_in(self):
        file = self.file()
        coordinator, remote = self.world.coordinator(file, "--frames", "10"), self.world.remote(file, "b", "--frames", "10")
        token = os.path.join(self.world.folder, "chain.token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write("a" * 64)
        remote.start()
        remote.expect_log("waits for `carousel run`")
        with open(token, "w", encoding="utf-8") as f:
            f.write("b" * 64)
        self.assertEqual(coordinator.start().wait(), 2)
        self.assertIn("has a different token for this pipeline", coordinator.text())
        self.assertIsNone(remote.process.poll())

    def test_the_token_is_made_for_its_owner_alone(self):
        coordinator = self.world.coordinator(self.file(), "--frames", "10").start()
        coordinator.expect_log("waiting for host b")
        self.assertEqual(os.stat(os.path.join(self.world.folder, "chain.token")).st_mode & 0o777, 0o600)
        coordinator.interrupt()
        self.assertEqual(coordinator.wait(), 130)


class Long(Case):
    def test_a_stream_that_begins_on_the_other_host_ends_by_ctrl_c_here_with_every_frame(self):
        file = self.world.write("from_there.toml", SOURCE.format(bytes=SIZE) + 'host = "b"\n'
                                + SINK.format(name="sink", of="source", bytes=SIZE, more="")
                                + HOSTS)
        coordinator, remote = self.world.coordinator(file, "--fps", "60"), self.world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        coordinator.has_frames("sink", remote)
        self.assertIn("run `carousel set` on the host of their source", coordinator.command("set", "level=2").stderr)
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.assertIn("the other hosts still send; they are notified", coordinator.text())
        self.whole(coordinator, remote, coordinator.report()["frames"])

    def test_a_restarted_coordinators_run_gets_a_restarted_remote_partition(self):
        file = self.file()
        coordinator, remote = self.world.coordinator(file, "--fps", "60"), self.world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("sink", coordinator)
        coordinator.supervisor_is_killed("--fresh")
        remote.expect_log("the coordinator has started another run")
        remote.expect_log("waits for `carousel run`[\\s\\S]*waits for `carousel run`")
        coordinator.expect_log("is up after[\\s\\S]*is up after", 40)
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())

    def test_a_remote_partition_without_a_run_record_refuses_a_coordinator_after_takeover(self):
        file = self.file()
        coordinator, remote = self.world.coordinator(file, "--fps", "60"), self.world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        coordinator.process.send_signal(signal.SIGSTOP)
        remote.start()
        remote.expect_log("waits for `carousel run`")
        os.mkdir(os.path.join(remote.runtime, "carousel", remote.run_name, "coordinator-run"))   # no file can replace it
        coordinator.process.send_signal(signal.SIGCONT)
        remote.expect_log("warning: .*coordinator-run.*: if another supervisor takes over on this host, it can't identify the run")
        remote.has_frames("sink", coordinator)
        remote.supervisor_is_killed()
        remote.expect_log("the coordinator was refused, because .*/coordinator-run does not name the run that the frames here belong to")
        self.assertNotEqual(coordinator.wait(), 0)
        self.assertIn("can't determine whether its frames belong to this run", coordinator.text())
        remote.interrupt()
        remote.wait()

    def test_a_failed_remote_partition_ends_the_run_with_its_reason(self):
        file = self.file(more='restart = "no"')
        coordinator, remote = self.world.coordinator(file, "--fps", "60"), self.world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("sink", coordinator)
        wait_for("a process of sink", lambda: remote.kill("sink"))
        self.assertEqual([coordinator.wait(), remote.wait()], [1, 1], coordinator.text() + remote.text())
        self.assertRegex(coordinator.text(), "stage host b has failed")


    def test_a_remote_partition_lost_after_this_host_finished_ends_the_run_with_an_error(self):
        file = self.file(more="delay_ms = 400")
        coordinator, remote = self.world.coordinator(file, "--frames", "12"), self.world.remote(file, "b", "--frames", "12")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        # Every frame has been received there, and the sink still has to process some of them.
        wait_for("this host is done", lambda: all(s.get("state") == "done" for s in coordinator.ps().get("stages") or [{}] if "/" not in s.get("name", "/")))
        self.assertLess(remote.stage("sink").get("frames") or 0, 12)
        remote.lose()
        remote.start()
        self.assertEqual(coordinator.wait(), 1, coordinator.text() + remote.text())
        self.assertIn("host b has lost its part of the run, and its sinks do not have all frames", coordinator.text())

    def begin_and_lose(self, coordinator, remote):
        """Both hosts; then b is lost in mid-run and started again. Returns what its sink had delivered by then."""
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("sink", coordinator, more_than=30)
        delivered = remote.lose()
        remote.start()
        return delivered

    def test_a_lost_host_continues_by_durable_release_where_its_sinks_were(self):
        file = self.file(host='release = "durable"')
        options = ("--frames", "240", "--fps", "60")
        coordinator, remote = self.world.coordinator(file, *options), self.world.remote(file, "b", *options)
        delivered = self.begin_and_lose(coordinator, remote)
        coordinator.expect_log(r"host b restarts at frame \d+: frames that its sinks do not have are kept here")
        first = int(re.search(r"restarts at frame (\d+)", coordinator.text())[1])
        self.assertTrue(0 < first <= len(delivered), (first, len(delivered)))
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        self.whole(coordinator, remote, 240)
        self.assertEqual([coordinator.report()["first"], remote.report()["first"]], [0, first])
        here = ledger(os.path.join(self.world.folder, "b-ledger-sink.bin"))
        self.assertEqual(min(here), first)
        self.hash_on_one_host(240)
        self.assertEqual({**delivered, **here}, ledger(os.path.join(self.world.folder, "near-ledger-sink.bin")))

    def test_a_lost_durable_host_that_two_rings_go_to_gets_the_rest_of_both(self):
        file = self.world.write("two.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="turn", of="source", bytes=SIZE, more="turns = true")
                                + SINK.format(name="sink", of='turn", "source', bytes=SIZE, more='host = "b"\ndelay_ms = 5')
                                + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more='release = "durable"\nsync = true'))
        coordinator, remote = self.world.coordinator(file, "--frames", "300"), self.world.remote(file, "b", "--frames", "300")
        delivered = self.begin_and_lose(coordinator, remote)
        coordinator.expect_log(r"host b restarts at frame \d+")
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        here = ledger(os.path.join(self.world.folder, "b-ledger-sink.bin"))
        self.assertEqual(sorted({**delivered, **here}), list(range(300)))
        self.assertEqual(max(here), 299)

    def test_a_remote_partition_lost_after_its_durable_sinks_have_all_loses_no_frames(self):
        file = self.file(more="delay_ms = 100", host='release = "durable"')
        coordinator, remote = self.world.coordinator(file, "--frames", "30"), self.world.remote(file, "b", "--frames", "30")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("sink", coordinator)
        folder, pids = os.path.join(remote.runtime, "carousel", remote.run_name), [s["pid"] for s in remote.ps()["stages"]]
        remote.process.send_signal(signal.SIGSTOP)   # the stages of that host continue, and the coordinator is not notified that they are done
        wait_for("this host is done", lambda: all(s.get("state") == "done" for s in coordinator.ps().get("stages") or [{}] if "/" not in s.get("name", "/")))
        self.assertEqual(len(lose_run(remote.process, folder, pids)), 30)
        remote.start()
        self.assertEqual(coordinator.wait(), 0, coordinator.text() + remote.text())
        self.assertIn("host b has lost its report, but all its frames are in the files of its sinks", coordinator.text())

    def test_a_host_that_asks_for_compressed_frames_gets_fewer_bytes(self):
        smooth = "smooth = true\n"
        file = self.file(source=smooth, host='compress = "lz4"')
        coordinator, remote = self.world.coordinator(file, "--frames", "40"), self.world.remote(file, "b", "--frames", "40")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.whole(coordinator, remote, 40)
        link = next(s for s in coordinator.report()["stages"] if s["name"] == "source-to-b")["link"]
        self.assertEqual(link["bytes"], 40 * SIZE)
        self.assertLess(link["bytes_on_the_way"], link["bytes"] / 4)
        self.assertEqual(remote.report()["image_hash"], self.hash_on_one_host(40, smooth))

    def test_a_host_may_ask_for_frames_that_are_read_where_they_are(self):
        file = self.file(host='memory = "direct"')   # on the CPU all rings are
        coordinator, remote = self.world.coordinator(file, "--frames", "40"), self.world.remote(file, "b", "--frames", "40")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.whole(coordinator, remote, 40)


class Names(Case):
    def test_stages_of_the_other_host_have_its_name_before_theirs(self):
        file = self.file()
        coordinator, remote = self.world.coordinator(file, "--fps", "60", "--keep-logs"), self.world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        wait_for("b's stages in ps", lambda: coordinator.stage("b/sink").get("frames"))
        pid = remote.stage("sink")["pid"]
        done = coordinator.command("kill", "b/sink")
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_for("another process", lambda: remote.stage("sink").get("pid") not in (None, pid))
        wait_for("ps tells it", lambda: coordinator.stage("b/sink").get("restarts") == 1)
        self.assertEqual(coordinator.command("stop", "b/sink").returncode, 0)
        wait_for("it is stopped", lambda: coordinator.stage("b/sink").get("state") == "stopped")
        self.assertEqual(coordinator.command("cont", "b/sink").returncode, 0)
        for words, restarts in ((("restart", "b/sink"), 2), (("inject", "b/sink", "--fault", "abort"), 3)):
            done = coordinator.command(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            wait_for(f"{words[0]} has done it", lambda n=restarts: (coordinator.stage("b/sink").get("restarts") or 0) >= n)
            wait_for("it runs again", lambda: coordinator.stage("b/sink").get("state") == "running")
        for word, state in (("down", "down"), ("up", "running")):
            done = coordinator.command(word, "b/sink")
            self.assertEqual(done.returncode, 0, done.stderr)
            wait_for(f"it is {state}", lambda s=state: coordinator.stage("b/sink").get("state") == s)
        self.assertIn("no host \"c\"", coordinator.command("kill", "c/sink").stderr)
        self.assertRegex(coordinator.command("ps").stdout, r"host b \(127.0.0.1\): running, its clock is [0-9.]+ ms (ahead of|behind) this host's clock")
        clock = coordinator.ps()["hosts"][0]
        self.assertLess(abs(clock["clock_ahead_ms"]), clock["clock_error_ms"] + 1)  # one machine, one clock
        self.assertIn("b/carousel", coordinator.command("logs").stdout)
        wait_for("a line of a stage of b's", lambda: "`carousel inject`: abort" in coordinator.command("logs", "b/sink").stdout)
        self.assertNotIn("source-to-b |", coordinator.command("logs", "b/carousel").stdout)
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.assertIn("clock", coordinator.report()["hosts"]["b"])

    def test_latencies_over_two_hosts_use_one_clock_however_far_apart_theirs_are(self):
        ahead_s = 1000
        other_clock = ["unshare", "-T", "-f", "--monotonic", str(ahead_s), "--"]
        if subprocess.run([*other_clock, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no time namespace can be made here")
        file = self.file()
        coordinator = self.world.coordinator(file, "--fps", "100", "--frames", "400")
        remote = self.world.remote(file, "b", "--fps", "100", "--frames", "400", inside=other_clock)
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        clock = wait_for("b's clock", lambda: next((h for h in coordinator.ps().get("hosts") or [] if h.get("clock_ahead_ms")), None))
        self.assertLess(abs(clock["clock_ahead_ms"] - 1000 * ahead_s), clock["clock_error_ms"] + 1)
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        sink = next(s for s in remote.report()["stages"] if s["name"] == "sink")
        latencies = sink["end_to_end_ms"]
        self.assertGreater(latencies["p50"], 0)
        self.assertLess(latencies["p99"], 5000)   # by unrelated clocks it would be a million, or zero


if __name__ == "__main__":
    name = sys.argv.pop(2)
    unittest.main(argv=[sys.argv[0], name], verbosity=2)
