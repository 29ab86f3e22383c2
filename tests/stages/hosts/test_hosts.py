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
        one = self.world.near(self.world.write("one.toml", SOURCE.format(bytes=SIZE) + source + SINK.format(name="sink", of="source", bytes=SIZE, more="")))
        self.assertEqual(one.start("--frames", str(frames)).wait(), 0, one.text())
        return one.report()["image_hash"]

    def whole(self, near, far, frames):
        for host in (near, far):
            r = host.report()
            self.assertEqual([r[k] for k in ("lost", "repeated", "torn", "frames")], [0, 0, 0, frames], host.text()[-3000:])
        self.assertEqual(near.report()["hosts"]["b"]["image_hash"], far.report()["image_hash"])


class Everyday(Case):
    def test_one_file_runs_on_two_hosts_with_kills_of_stages_and_both_supervisors(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        file = self.file()
        options = ("--frames", "240", "--fps", "60")
        near, far = self.world.near(file, *options), self.world.far(file, "b", *options)
        near.start()
        near.says(r"waiting for host b .*carousel host --file .*chain.toml --as b --device cpu --frames 240 --fps 60")
        far.start()
        far.has_frames("sink", near)
        victims = [(near, "source"), (near, "source-to-b"), (far, "source-from-here"), (far, "sink")]
        dice.shuffle(victims)
        for host, stage in victims:
            time.sleep(dice.uniform(0.05, 0.3))
            wait_for(f"a process of {stage}", lambda h=host, s=stage: h.kill(s))
        far.supervisor_is_killed()
        near.supervisor_is_killed()
        self.assertEqual([near.wait(60), far.wait(30)], [0, 0], near.text() + far.text())
        self.whole(near, far, 240)
        self.assertEqual(far.report()["image_hash"], self.hash_on_one_host(240))

    def test_ctrl_c_on_either_host_ends_both_with_every_frame_that_was_begun(self):
        for name, presses in (("from_near", 0), ("from_far", 1)):
            with self.subTest(name):
                file = self.file(name)
                near, far = self.world.near(file, "--fps", "60"), self.world.far(file, "b", "--fps", "60")
                near.start()
                near.says("waiting for host b")
                far.start()
                far.has_frames("sink", near)
                (near, far)[presses].interrupt()
                self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
                self.whole(near, far, far.report()["frames"])
                if presses:
                    self.assertIn("interrupted on host b", near.text())

    def test_what_differs_between_the_hosts_is_named_and_refused(self):
        file = self.file()
        near, far = self.world.near(file, "--frames", "10"), self.world.far(file, "b", "--frames", "11")
        near.start()
        near.says("waiting for host b")
        far.start()
        self.assertEqual(near.wait(), 2)
        self.assertIn("frames is 11 there and 10 here", near.text())
        far.says("frames is 1[01] there and 1[01] here")
        self.assertIsNone(far.process.poll())  # it waits for one that fits
        other = self.world.near(file, "--frames", "11")
        other.start()
        self.assertEqual([other.wait(), far.wait()], [0, 0], other.text() + far.text())

    def test_a_run_that_begins_in_the_middle_does_so_on_all_hosts(self):
        file = self.file()
        near, far = self.world.near(file, "--frames", "60", "--first", "20"), self.world.far(file, "b", "--frames", "60", "--first", "30")
        near.start()
        near.says("waiting for host b")
        far.start()
        self.assertEqual(near.wait(), 2)
        self.assertIn("it was given --first 30, and this run begins with frame 20", near.text())
        far.says("the near host's run begins with frame 20, and --first 30 was given here")
        far.end()
        near, far = self.world.near(file, "--frames", "60", "--first", "20"), self.world.far(file, "b", "--frames", "60")
        near.start()
        far.start()
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
        self.assertEqual([(h.report()["frames"], h.report()["lost"], h.report()["first"]) for h in (near, far)], [(60, 0, 20)] * 2)

    def test_a_wrong_token_is_told_and_gets_nothing_in(self):
        file = self.file()
        near, far = self.world.near(file, "--frames", "10"), self.world.far(file, "b", "--frames", "10")
        token = os.path.join(self.world.folder, "chain.token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write("a" * 64)
        far.start()
        far.says("waits for `carousel run`")
        with open(token, "w", encoding="utf-8") as f:
            f.write("b" * 64)
        self.assertEqual(near.start().wait(), 2)
        self.assertIn("does not know this pipeline's token", near.text())
        self.assertIsNone(far.process.poll())

    def test_the_token_is_made_for_its_owner_alone(self):
        near = self.world.near(self.file(), "--frames", "10").start()
        near.says("waiting for host b")
        self.assertEqual(os.stat(os.path.join(self.world.folder, "chain.token")).st_mode & 0o777, 0o600)
        near.interrupt()
        self.assertEqual(near.wait(), 130)


class Long(Case):
    def test_a_stream_that_begins_on_the_other_host_ends_by_ctrl_c_here_with_every_frame(self):
        file = self.world.write("from_there.toml", SOURCE.format(bytes=SIZE) + 'host = "b"\n'
                                + SINK.format(name="sink", of="source", bytes=SIZE, more="")
                                + HOSTS)
        near, far = self.world.near(file, "--fps", "60"), self.world.far(file, "b", "--fps", "60")
        near.start()
        near.says("waiting for host b")
        far.start()
        near.has_frames("sink", far)
        self.assertIn("run `carousel set` where the frames begin", near.command("set", "level=2").stderr)
        near.interrupt()
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
        self.assertIn("the other hosts, which are told", near.text())
        self.whole(near, far, near.report()["frames"])

    def test_a_near_run_that_begins_anew_gets_a_far_part_that_does_too(self):
        file = self.file()
        near, far = self.world.near(file, "--fps", "60"), self.world.far(file, "b", "--fps", "60")
        near.start()
        near.says("waiting for host b")
        far.start()
        far.has_frames("sink", near)
        near.supervisor_is_killed("--fresh")
        far.says("the near host has begun another run")
        far.says("waits for `carousel run`[\\s\\S]*waits for `carousel run`")
        near.says("is up after[\\s\\S]*is up after", 40)
        near.interrupt()
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())

    def test_a_far_part_that_could_not_note_whose_frames_it_has_lets_no_near_run_in_once_it_is_taken_over(self):
        file = self.file()
        near, far = self.world.near(file, "--fps", "60"), self.world.far(file, "b", "--fps", "60")
        near.start()
        near.says("waiting for host b")
        near.process.send_signal(signal.SIGSTOP)
        far.start()
        far.says("waits for `carousel run`")
        os.mkdir(os.path.join(far.runtime, "carousel", far.run_name, "near-run"))   # no file can take its place
        near.process.send_signal(signal.SIGCONT)
        far.says("warning: .*near-run.*: a supervisor that takes this part over would not know whose frames it has")
        far.has_frames("sink", near)
        far.supervisor_is_killed()
        far.says("the near host was refused: .*/near-run does not say which run's frames this part has")
        self.assertNotEqual(near.wait(), 0)
        self.assertIn("does not know whether its frames are of this run", near.text())
        far.interrupt()
        far.wait()

    def test_a_far_part_that_has_failed_ends_the_run_with_its_reason(self):
        file = self.file(more='restart = "no"')
        near, far = self.world.near(file, "--fps", "60"), self.world.far(file, "b", "--fps", "60")
        near.start()
        near.says("waiting for host b")
        far.start()
        far.has_frames("sink", near)
        wait_for("a process of sink", lambda: far.kill("sink"))
        self.assertEqual([near.wait(), far.wait()], [1, 1], near.text() + far.text())
        self.assertRegex(near.text(), "stage host b has failed")


    def test_a_far_part_that_is_lost_when_all_of_this_host_is_done_ends_the_run_with_that(self):
        file = self.file(more="delay_ms = 400")
        near, far = self.world.near(file, "--frames", "12"), self.world.far(file, "b", "--frames", "12")
        near.start()
        near.says("waiting for host b")
        far.start()
        # Every frame has been taken there, and the sink has some of them to do still.
        wait_for("this host is done", lambda: all(s.get("state") == "done" for s in near.ps().get("stages") or [{}] if "/" not in s.get("name", "/")))
        self.assertLess(far.stage("sink").get("frames") or 0, 12)
        far.lose()
        far.start()
        self.assertEqual(near.wait(), 1, near.text() + far.text())
        self.assertIn("host b has lost its part of the run: not all frames have come to its sinks", near.text())

    def begin_and_lose(self, near, far):
        """Both hosts; then b is lost in mid-run and started again. What its sink had delivered by then."""
        near.start()
        near.says("waiting for host b")
        far.start()
        far.has_frames("sink", near, more_than=30)
        delivered = far.lose()
        far.start()
        return delivered

    def test_a_lost_host_goes_on_by_durable_release_where_its_sinks_were(self):
        file = self.file(host='release = "durable"')
        options = ("--frames", "240", "--fps", "60")
        near, far = self.world.near(file, *options), self.world.far(file, "b", *options)
        delivered = self.begin_and_lose(near, far)
        near.says(r"host b begins anew, at frame \d+: what its sinks have not is kept here")
        first = int(re.search(r"begins anew, at frame (\d+)", near.text())[1])
        self.assertTrue(0 < first <= len(delivered), (first, len(delivered)))
        self.assertEqual([near.wait(60), far.wait(30)], [0, 0], near.text() + far.text())
        self.whole(near, far, 240)
        self.assertEqual([near.report()["first"], far.report()["first"]], [0, first])
        here = ledger(os.path.join(self.world.folder, "b-ledger-sink.bin"))
        self.assertEqual(min(here), first)
        self.hash_on_one_host(240)
        self.assertEqual({**delivered, **here}, ledger(os.path.join(self.world.folder, "near-ledger-sink.bin")))

    def test_a_lost_durable_host_that_two_rings_go_to_gets_the_rest_of_both(self):
        file = self.world.write("two.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="turn", of="source", bytes=SIZE, more="turns = true")
                                + SINK.format(name="sink", of='turn", "source', bytes=SIZE, more='host = "b"\ndelay_ms = 5')
                                + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more='release = "durable"\nsync = true'))
        near, far = self.world.near(file, "--frames", "300"), self.world.far(file, "b", "--frames", "300")
        delivered = self.begin_and_lose(near, far)
        near.says(r"host b begins anew, at frame \d+")
        self.assertEqual([near.wait(60), far.wait(30)], [0, 0], near.text() + far.text())
        here = ledger(os.path.join(self.world.folder, "b-ledger-sink.bin"))
        self.assertEqual(sorted({**delivered, **here}), list(range(300)))
        self.assertEqual(max(here), 299)

    def test_a_far_part_that_is_lost_when_its_durable_sinks_have_all_is_no_loss_of_frames(self):
        file = self.file(more="delay_ms = 100", host='release = "durable"')
        near, far = self.world.near(file, "--frames", "30"), self.world.far(file, "b", "--frames", "30")
        near.start()
        near.says("waiting for host b")
        far.start()
        far.has_frames("sink", near)
        folder, pids = os.path.join(far.runtime, "carousel", far.run_name), [s["pid"] for s in far.ps()["stages"]]
        far.process.send_signal(signal.SIGSTOP)   # its stages go on, and nobody tells the near host that they are done
        wait_for("this host is done", lambda: all(s.get("state") == "done" for s in near.ps().get("stages") or [{}] if "/" not in s.get("name", "/")))
        self.assertEqual(len(lose_run(far.process, folder, pids)), 30)
        far.start()
        self.assertEqual(near.wait(), 0, near.text() + far.text())
        self.assertIn("host b has lost its report: all frames are in the files of its sinks", near.text())

    def test_a_host_that_asks_for_compressed_frames_gets_fewer_bytes(self):
        smooth = "smooth = true\n"
        file = self.file(source=smooth, host='compress = "lz4"')
        near, far = self.world.near(file, "--frames", "40"), self.world.far(file, "b", "--frames", "40")
        near.start()
        near.says("waiting for host b")
        far.start()
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
        self.whole(near, far, 40)
        link = next(s for s in near.report()["stages"] if s["name"] == "source-to-b")["link"]
        self.assertEqual(link["bytes"], 40 * SIZE)
        self.assertLess(link["bytes_on_the_way"], link["bytes"] / 4)
        self.assertEqual(far.report()["image_hash"], self.hash_on_one_host(40, smooth))

    def test_a_host_may_ask_for_frames_that_are_read_where_they_are(self):
        file = self.file(host='memory = "direct"')   # on the CPU all are
        near, far = self.world.near(file, "--frames", "40"), self.world.far(file, "b", "--frames", "40")
        near.start()
        near.says("waiting for host b")
        far.start()
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
        self.whole(near, far, 40)


class Names(Case):
    def test_stages_of_the_other_host_have_its_name_before_theirs(self):
        file = self.file()
        near, far = self.world.near(file, "--fps", "60", "--keep-logs"), self.world.far(file, "b", "--fps", "60")
        near.start()
        near.says("waiting for host b")
        far.start()
        wait_for("b's stages in ps", lambda: near.stage("b/sink").get("frames"))
        pid = far.stage("sink")["pid"]
        done = near.command("kill", "b/sink")
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_for("another process", lambda: far.stage("sink").get("pid") not in (None, pid))
        wait_for("ps tells it", lambda: near.stage("b/sink").get("restarts") == 1)
        self.assertEqual(near.command("stop", "b/sink").returncode, 0)
        wait_for("it is stopped", lambda: near.stage("b/sink").get("state") == "stopped")
        self.assertEqual(near.command("cont", "b/sink").returncode, 0)
        for words, restarts in ((("restart", "b/sink"), 2), (("inject", "b/sink", "--fault", "abort"), 3)):
            done = near.command(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            wait_for(f"{words[0]} has done it", lambda n=restarts: (near.stage("b/sink").get("restarts") or 0) >= n)
            wait_for("it runs again", lambda: near.stage("b/sink").get("state") == "running")
        for word, state in (("down", "down"), ("up", "running")):
            done = near.command(word, "b/sink")
            self.assertEqual(done.returncode, 0, done.stderr)
            wait_for(f"it is {state}", lambda s=state: near.stage("b/sink").get("state") == s)
        self.assertIn("no host \"c\"", near.command("kill", "c/sink").stderr)
        self.assertRegex(near.command("ps").stdout, r"host b \(127.0.0.1\): running, its clock is [0-9.]+ ms (ahead of|behind) this one's")
        clock = near.ps()["hosts"][0]
        self.assertLess(abs(clock["clock_ahead_ms"]), clock["clock_error_ms"] + 1)  # one machine, one clock
        self.assertIn("b/carousel", near.command("logs").stdout)
        wait_for("a line of a stage of b's", lambda: "`carousel inject`: abort" in near.command("logs", "b/sink").stdout)
        self.assertNotIn("source-to-b |", near.command("logs", "b/carousel").stdout)
        near.interrupt()
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
        self.assertIn("clock", near.report()["hosts"]["b"])

    def test_latencies_over_two_hosts_are_told_by_one_clock_however_far_theirs_are_apart(self):
        ahead_s = 1000
        other_clock = ["unshare", "-T", "-f", "--monotonic", str(ahead_s), "--"]
        if subprocess.run([*other_clock, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no time namespace can be made here")
        file = self.file()
        near = self.world.near(file, "--fps", "100", "--frames", "400")
        far = self.world.far(file, "b", "--fps", "100", "--frames", "400", inside=other_clock)
        near.start()
        near.says("waiting for host b")
        far.start()
        clock = wait_for("b's clock", lambda: next((h for h in near.ps().get("hosts") or [] if h.get("clock_ahead_ms")), None))
        self.assertLess(abs(clock["clock_ahead_ms"] - 1000 * ahead_s), clock["clock_error_ms"] + 1)
        self.assertEqual([near.wait(), far.wait()], [0, 0], near.text() + far.text())
        sink = next(s for s in far.report()["stages"] if s["name"] == "sink")
        told = sink["end_to_end_ms"]
        self.assertGreater(told["p50"], 0)
        self.assertLess(told["p99"], 5000)   # by clocks that nobody relates it would be a million, or nothing


if __name__ == "__main__":
    name = sys.argv.pop(2)
    unittest.main(argv=[sys.argv[0], name], verbosity=2)
