"""A durable host whose frames come from another remote one (coordinator -> b -> c), and is lost: the host that has the frames which its
sinks lack knows from which frame on. And a lost coordinator, whose next run continues.
Usage: test_durable_chain.py FOLDER_OF_PROGRAMS Everyday|Long"""
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import APART, PORT, World  # noqa: E402
from link_pair import ledger, wait_for  # noqa: E402
from spread import SINKS, Spread, stages_text  # noqa: E402

PROGRAMS = sys.argv[1]
SIZE = 1 << 14
PLACES = {"b": ("127.0.0.1", PORT), "c": ("127.0.0.1", PORT + APART)}
DURABLE = 'release = "durable"\n'
C_ALONE, BOTH = {"hosts.c": DURABLE}, {"hosts.b": DURABLE, "hosts.c": DURABLE}
AGAIN = r"host c restarts at frame (\d+): frames that its sinks do not have are sent again from (this host and from )?host b"


class Case(unittest.TestCase):
    def begun(self, more, frames=150, fps=30, taken=60, shape="chain"):
        """The last sink has taken this many frames: more than all rings hold, so some are released everywhere before it."""
        world = World(PROGRAMS)
        self.addCleanup(world.end)
        s = Spread(world, shape, SIZE, frames, fps, PLACES, more=more).start()
        for host, sink in SINKS[shape].items():
            s.remote[host].has_frames(sink, s.coordinator, taken)
        return s

    def logged_first(self, s):
        """The frame at which c restarts."""
        s.coordinator.expect_log(AGAIN)
        return int(re.search(AGAIN, s.coordinator.text())[1])

    def last_incarnation(self, s, host):
        """The frames of that host's sink, by its ledger."""
        return ledger(os.path.join(s.world.folder, host + "-ledger-sink.bin"))

    def check_union(self, s, host, before):
        """What that host's sink has over both incarnations, each frame with its hash, is what it has on one host."""
        one = s.world.coordinator(s.world.write("one.toml", stages_text(s.shape, SIZE, False)), "--frames", str(s.frames)).start()
        self.assertEqual(one.wait(60), 0, one.text())
        self.assertEqual({**before, **self.last_incarnation(s, host)}, self.last_incarnation(s, "near"))

    def continues_complete(self, s, delivered, first):
        """All end with 0, and c's sinks have every frame once over both incarnations, except for those that b had not received yet."""
        self.assertEqual(s.codes(), [0, 0, 0], s.text())
        for host, begun in (("near", 0), ("b", 0), ("c", first)):
            r = s.hosts[host].report()
            self.assertEqual([r[k] for k in ("first", "frames", "lost", "repeated", "torn")], [begun, s.frames, 0, 0, 0], s.text())
        self.assertEqual(min(self.last_incarnation(s, "c")), first)
        self.assertTrue(0 < first <= len(delivered), (first, len(delivered)))
        self.check_union(s, "c", delivered)

    def is_lost_and_continues(self, more):
        s = self.begun(more)
        delivered = s.remote["c"].lose()
        s.remote["c"].start()
        self.continues_complete(s, delivered, self.logged_first(s))


class Everyday(Case):
    def test_a_lost_durable_host_downstream_of_a_remote_one_continues_at_its_frames(self):
        self.is_lost_and_continues(C_ALONE)

    def test_so_it_does_where_the_host_before_it_is_durable_too(self):
        self.is_lost_and_continues(BOTH)


class Long(Case):
    def test_where_this_host_sends_to_it_too_who_has_come_furthest_is_right(self):
        s = self.begun(C_ALONE, 240, shape="two ways")
        delivered = s.remote["c"].lose()
        s.remote["c"].start()
        s.coordinator.expect_log("frames that its sinks do not have are sent again from this host and from host b")
        self.continues_complete(s, delivered, self.logged_first(s))

    def test_a_host_that_lost_its_memory_but_not_its_folder_also_continues_there(self):
        s = self.begun(C_ALONE, 240)
        c = s.remote["c"]
        delivered = c.lose_memory(self)
        c.start()
        self.continues_complete(s, delivered, self.logged_first(s))

    def test_it_waits_for_a_supervisor_that_is_away_and_knows_the_frame(self):
        s = self.begun({**C_ALONE, "pipeline": "supervisor_grace_s = 30"}, 240)
        b, c = s.remote["b"], s.remote["c"]
        b.process.kill()
        b.process.wait()
        delivered = c.lose()
        c.start()
        s.coordinator.expect_log(r"host c restarts when host b, which is lost \(.*\), reports its first kept frame")
        time.sleep(1)
        self.assertNotRegex(s.coordinator.text(), "host c restarts at frame")
        b.start()   # it takes its part over, and was away when c was lost
        self.continues_complete(s, delivered, self.logged_first(s))

    def both_are_lost(self, more, until, again):
        """c is started again first, and b when the coordinator has logged `until`."""
        s = self.begun({**BOTH, **more}, 240)
        b, c = s.remote["b"], s.remote["c"]
        delivered = c.lose()
        b.lose()
        c.start()
        s.coordinator.expect_log(until)
        b.start()
        s.coordinator.expect_log(r"host b restarts at frame [1-9]\d*: frames that its sinks do not have are kept here")
        s.coordinator.expect_log(again)
        first = int(re.search(again, s.coordinator.text())[1])
        self.assertEqual(s.codes(), [0, 0, 0], s.text())
        self.assertEqual([b.report()["first"], c.report()["first"]], [first, first])
        self.check_union(s, "c", delivered)

    def test_it_continues_where_its_sender_restarts_if_both_were_lost(self):
        self.both_are_lost({}, "host c restarts when host b, which is lost", AGAIN)

    def test_it_also_continues_if_that_sender_returns_after_the_timeout(self):
        again = r"host c restarts at frame (\d+): frames that its sinks do not have are sent again when host b is back"
        self.both_are_lost({"pipeline": "supervisor_grace_s = 1"}, again, again)

    def test_frames_that_only_a_lost_sender_had_are_reported_lost(self):
        s = self.begun(C_ALONE, 240)
        for host in ("c", "b"):
            s.remote[host].lose()
        for host in ("c", "b"):
            s.remote[host].start()
        s.coordinator.expect_log(r"host b restarts, and its frames are lost")
        s.coordinator.expect_log(r"host c restarts at frame \d+: frames that host b had for it are lost")
        self.assertEqual(s.coordinator.wait(60), 1, s.text())
        self.assertRegex(s.coordinator.text(), r"source-to-b .*: \d+ frames are lost")

    def test_a_sender_that_can_not_read_the_frame_reports_it_and_it_is_given_by_hand(self):
        s = self.begun(C_ALONE, 240)
        b, c = s.remote["b"], s.remote["c"]
        path = os.path.join(b.runtime, "carousel", b.run_name, "ledger-middle-to-c.bin")
        delivered = c.lose()
        os.rename(path, path + ".aside")   # the process that writes it has it open
        os.mkdir(path)
        c.start()
        s.coordinator.expect_log("host c restarts at frame 0: it is unknown whether this is the first frame that its sinks do not have, because host b can't read its first kept frame. "
                    "If not, the sending stage on that host logs the --first N with which to start `carousel host` on c")
        s.coordinator.expect_log(r"middle-to-c .*start it with --first \d+")
        first = int(re.search(r"start it with --first (\d+)", s.coordinator.text())[1])
        c.process.kill()
        c.process.wait()
        c.start("--fresh", "--first", str(first))
        wait_for("c goes on", lambda: (c.stage("sink").get("frames") or 0) > first)
        os.rmdir(path)
        os.rename(path + ".aside", path)
        self.continues_complete(s, delivered, first)

    def test_it_continues_although_the_coordinator_has_finished(self):
        s = self.begun({**C_ALONE, "sink": "delay_ms = 250"}, 40, 60, taken=8)
        wait_for("the coordinator is done", lambda: s.coordinator.stage("source-to-b").get("state") == "done")
        delivered = s.remote["c"].lose()
        self.assertLess(len(delivered), 38, "this machine is too slow for this test")
        s.remote["c"].start()
        self.continues_complete(s, delivered, self.logged_first(s))

    def test_a_lost_coordinator_continues_with_the_remote_hosts_last_number(self):
        s = self.begun({"pipeline": "supervisor_grace_s = 1"}, shape="two")
        b = s.remote["b"]
        s.coordinator.lose()
        b.expect_log("the coordinator is lost")
        b.interrupt()
        self.assertEqual(b.wait(60), 0, b.text())
        first = int(re.search(r"spread\.b: (\d+) frames in ", b.text())[1])
        self.assertEqual(b.report()["frames"], first)
        before = self.last_incarnation(s, "b")
        self.assertEqual(sorted(before), list(range(first)))
        b.start()
        s.coordinator.start("--first", str(first))
        self.assertEqual(s.codes(), [0, 0], s.text())
        self.assertEqual(sorted(self.last_incarnation(s, "b")), list(range(first, s.frames)))   # no frame twice
        for host in (s.coordinator, b):
            self.assertEqual([host.report()[k] for k in ("first", "frames", "lost", "repeated", "torn")], [first, s.frames, 0, 0, 0])
        self.check_union(s, "b", before)


if __name__ == "__main__":
    name = sys.argv.pop(2)
    unittest.main(argv=[sys.argv[0], name, *sys.argv[2:]], verbosity=2)
