"""One pipeline file over three hosts, and hosts that are lost with a part of it, on loopback.
Usage: test_three_hosts.py FOLDER_OF_PROGRAMS Everyday|Stopped|Long|Campaign"""
import contextlib
import os
import random
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import APART, HOST, PORT, SINK, SOURCE, World, kill_in_turn  # noqa: E402
from link_pair import check_report, hash_in  # noqa: E402
from namespaces import B_ADDRESS, Namespaces  # noqa: E402
from processes import is_alive, wait_for  # noqa: E402
from spread import STAGES, Spread  # noqa: E402
from seeds import seed  # noqa: E402

PROGRAMS = sys.argv[1]
SEED = seed(7)
PLACES = {"b": ("127.0.0.1", PORT), "c": ("127.0.0.1", PORT + APART)}
SIZE = 1 << 16


class Case(unittest.TestCase):
    def spread(self, shape, frames, fps=60, started=True):
        world = World(PROGRAMS)
        self.addCleanup(world.end)
        run = Spread(world, shape, SIZE, frames, fps, PLACES)
        return run.start() if started else run

    def kill_on_all(self, s, dice, of_each=None):
        """This many stages of each host, or all of them, and then each supervisor."""
        victims = [(s.hosts[h], stage) for h, stages in STAGES[s.shape].items() for stage in dice.sample(stages, of_each or len(stages))]
        kill_in_turn(victims, dice)
        supervisors = list(s.hosts.values())
        dice.shuffle(supervisors)
        for host in supervisors:
            host.supervisor_is_killed()

    def kill_all_of(self, host, with_supervisor=False):
        """All of its stages at once, and before them their supervisor. Returns after they have ended."""
        pids = [s["pid"] for s in host.ps().get("stages") or [] if s.get("pid")]
        self.assertTrue(pids)
        if with_supervisor:
            host.process.kill()
            host.process.wait()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for("they are gone", lambda: not any(is_alive(pid) for pid in pids))


class Everyday(Case):
    def test_a_chain_of_three_hosts_loses_nothing_by_kills_of_stages_and_supervisors_on_all_of_them(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        s = self.spread("chain", 120)
        self.kill_on_all(s, random.Random(SEED), 1)
        s.check_whole()


class Stopped(Case):
    def test_a_silent_link_and_a_stopped_link_process_lose_nothing(self):
        net = None
        try:
            net = Namespaces(otherwise=self.fail)
            self.addCleanup(net.end)
            silent = net.can_be_silenced()
        except AssertionError:   # not available: then the receiving process is stopped for as long
            silent = False
        print("silence by nft" if silent else "silence by SIGSTOP", file=sys.stderr)
        world = World(PROGRAMS)
        self.addCleanup(world.end)
        inside = {"near": net.inside(net.a), "b": net.inside(net.b)} if silent else {}
        # Soon declared dead, unless it is to stand still for as long as a silence lasts.
        more = {"pipeline": "frame_timeout_ms = 1000"} if silent else None
        s = Spread(world, "two", SIZE, 100, 60, {"b": (B_ADDRESS, PORT) if silent else PLACES["b"]}, inside, more).start()
        b = s.remote["b"]
        pid = wait_for("the receiving process", lambda: b.stage("source-from-here").get("pid"))
        if silent:
            self.assertTrue(net.drop_packets())
            time.sleep(3)   # longer than a frame may take, which a wait for another host does not count
            self.assertTrue(net.restore_packets())
        else:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(1.5)
            with contextlib.suppress(ProcessLookupError):   # a busy machine has spent 2 s here, and has replaced it
                os.kill(pid, signal.SIGCONT)
        s.coordinator.expect_log("source-to-b .*is down[\\s\\S]*source-to-b .*is up after")
        self.assertEqual(s.coordinator.stage("source-to-b").get("restarts"), 0, s.text())
        pid = wait_for("the receiving process", lambda: b.stage("source-from-here").get("pid"))
        os.kill(pid, signal.SIGSTOP)
        wait_for("it is replaced", lambda: b.stage("source-from-here").get("pid") not in (None, pid))
        s.check_whole()


class Long(Case):
    def test_frames_that_go_to_another_host_and_come_back_are_lost_by_no_kill_here_or_there(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        world = World(PROGRAMS)
        self.addCleanup(world.end)
        hosts = "".join(HOST.format(name=name, address="127.0.0.1", port=port, launcher=launcher, more="")
                        for name, port, launcher in (("a", PORT + APART, "here"), ("b", PORT, "none")))

        def written(name, there):
            return world.write(name, SOURCE.format(bytes=SIZE) + SINK.format(name="middle", of="source", bytes=SIZE, more="turns = true\n" + there)
                               + SINK.format(name="sink", of="middle", bytes=SIZE, more="") + (hosts if there else ""))

        options = ("--frames", "240", "--fps", "60")
        one = world.coordinator(written("one.toml", ""), *options).start()
        self.assertEqual(one.wait(60), 0, one.text())
        expected = hash_in(one, "sink")   # before the next run, whose report replaces it
        file = written("back.toml", 'host = "b"\n')
        coordinator, remote = world.coordinator(file, *options), world.remote(file, "b", *options)
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        coordinator.has_frames("sink", remote)
        victims = [(coordinator, s) for s in ("source", "source-to-b", "middle-from-b", "sink")] + [(remote, s) for s in ("source-from-a", "middle", "middle-to-a")]
        kill_in_turn(victims, random.Random(SEED))
        for host in (coordinator, remote):
            host.supervisor_is_killed()
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        for host in (coordinator, remote):
            check_report(host, 240)
        self.assertEqual(hash_in(coordinator, "sink"), expected)

    def reported_lost(self, host, stage):
        """The number of lost frames in its sending stage's log, which is all that were committed there."""
        # As in: "finish of frame 77: the receiving host (run ...) goes on at frame 0, but frames 0 to 73 ..."
        host.expect_log(f"{stage} .*frames 0 to \\d+ were committed there and released here: \\d+ frames are lost")
        found = set(re.findall(r"frames 0 to (\d+) were committed there and released here: (\d+) frames are lost", host.text()))
        self.assertEqual(len(found), 1, found)   # every repetition of the line is the same
        last, count = map(int, found.pop())
        self.assertEqual(count, last + 1)
        return count

    def ends_with_a_loss(self, s, lost, by, stage):
        """`lost` restarted without its rings; `stage` of host `by` sends to it."""
        codes = dict(zip(s.hosts, s.codes()))
        self.assertEqual([codes["near"], codes[by]], [1, 1], s.text())
        self.assertEqual([codes[h] for h in codes if h not in ("near", by)], [75] * (len(codes) - (1 if by == "near" else 2)), s.text())
        self.assertIn(f"host {lost} restarts, and its frames are lost", s.coordinator.text())
        count = self.reported_lost(s.coordinator, f"{by}/{stage}" if by != "near" else stage)
        here, there = s.hosts[by].report(), s.remote[lost].report()
        # The frames that the sending host reports as sent are those that it reports as lost, and no other
        # host reports it as delivered.
        row = next(x for x in here["stages"] if x["name"] == stage)
        self.assertEqual([row["frames"], there["frames"]], [count, 0], s.text())
        self.assertEqual(s.coordinator.report()["hosts"][lost]["frames"], 0)
        self.assertIn("failed", s.coordinator.report()["ending"])
        return count

    def test_a_host_with_the_sink_lost_with_its_rings_ends_the_run_with_the_lost_frames(self):
        s = self.spread("two", 600)
        s.remote["b"].has_frames("sink", s.coordinator, 30)
        delivered = len(s.remote["b"].lose())
        s.remote["b"].start()
        # The frames that b had delivered, except for frames not acknowledged yet: they aren't released here,
        # so they aren't lost here.
        window = 4
        self.assertGreaterEqual(self.ends_with_a_loss(s, "b", "near", "source-to-b") + window, delivered)

    def test_a_middle_host_that_is_lost_with_its_rings_ends_the_run_with_the_frames_that_it_had_taken(self):
        s = self.spread("chain", 600)
        s.remote["c"].has_frames("sink", s.coordinator, 30)
        s.remote["b"].lose()
        s.remote["b"].start()
        count = self.ends_with_a_loss(s, "b", "near", "source-to-b")
        c = s.remote["c"].report()
        # The frames that b had forwarded are in c's sink, intact: of the frames reported as lost, those are
        # not.
        self.assertEqual([c[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])
        self.assertTrue(30 < c["frames"] <= count, (c["frames"], count))

    def test_a_supervisor_that_dies_with_all_its_stages_has_lost_its_rings_and_reports_it(self):
        s = self.spread("chain", 600)
        b = s.remote["b"]
        s.remote["c"].has_frames("sink", s.coordinator, 30)
        self.kill_all_of(b, with_supervisor=True)
        b.start()
        b.expect_log("none of its stages is running, so its ring memory is lost. A new run starts")
        self.ends_with_a_loss(s, "b", "near", "source-to-b")


class Campaign(Long):
    """Too long for every change, and Long."""

    def test_a_chain_of_three_hosts_loses_nothing_by_kills_of_every_process_one_after_the_other(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        s = self.spread("chain", 300)
        self.kill_on_all(s, random.Random(SEED))
        s.check_whole()

    def test_one_ring_read_on_two_hosts_loses_nothing_by_kills_of_stages_and_supervisors_on_all_three(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        s = self.spread("fan-out", 300)
        self.kill_on_all(s, random.Random(SEED))
        s.check_whole()

    def test_a_middle_host_that_loses_its_stages_then_its_supervisor_keeps_its_rings(self):
        s = self.spread("chain", 300)
        b = s.remote["b"]
        self.kill_all_of(b)
        b.supervisor_is_killed()
        b.expect_log("adopted spread.b")   # it has the rings' memory, too: until then the last of its stages would take them along
        dice = random.Random(SEED)
        for stage in dice.sample(STAGES["chain"]["b"], 3):
            wait_for(f"a process of {stage}", lambda n=stage: b.kill(n))
        s.check_whole()

    def test_the_last_host_of_a_chain_lost_with_its_rings_is_reported_by_the_previous_one(self):
        s = self.spread("chain", 600)
        s.remote["c"].has_frames("sink", s.coordinator, 30)
        s.remote["c"].lose()
        s.remote["c"].start()
        self.ends_with_a_loss(s, "c", "b", "middle-to-c")
        self.assertIn("host b has failed", s.coordinator.text())

    def test_a_host_lost_after_the_last_acknowledgement_is_reported_without_an_endless_wait(self):
        # Its link has nothing more to send, and this host is not done yet: another link of it is paused.
        s = self.spread("fan-out", 12, fps=4, started=False)
        s.coordinator.start()
        s.coordinator.expect_log("waiting for host b")
        for host in s.remote.values():
            host.start()
        wait_for("frames on the way to c", lambda: (s.coordinator.stage("source-to-c").get("frames") or 0) >= 8)
        self.assertEqual(s.coordinator.command("stop", "source-to-c").returncode, 0)
        wait_for("all frames on b", lambda: s.coordinator.stage("source-to-b").get("frames") == 12)
        s.remote["b"].lose()
        s.remote["b"].start()
        s.coordinator.expect_log("host b restarts, and its frames are lost")
        self.assertEqual(s.coordinator.command("cont", "source-to-c").returncode, 0)
        self.assertEqual(s.coordinator.wait(60), 1, s.text())
        self.assertRegex(s.coordinator.text(), "host b waits for frames that will not arrive, because it has restarted after their sender finished")
        self.assertEqual(s.remote["c"].wait(), 0, s.text())
        self.assertEqual([s.remote["c"].report()[k] for k in ("lost", "repeated", "torn", "frames")], [0, 0, 0, 12])


if __name__ == "__main__":
    name = sys.argv.pop(2)
    unittest.main(argv=[sys.argv[0], name], verbosity=2)
