"""What durable release guarantees, on loopback: sync before the report, returned frames, rebuilt rings, an end that was not reported.
Usage: test_durable.py FOLDER_OF_PROGRAMS Campaign"""
import os
import random
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import APART, HOST, PORT as FILE_PORT, SINK, SOURCE, World, kill_in_turn  # noqa: E402
import link_pair as by_hand  # noqa: E402
from link_case import PORT, PROGRAMS, SEED, Case  # noqa: E402
from link_pair import check_report, format_of, hash_in, ledger, wait_for  # noqa: E402

DURABLE = 'release = "durable"\n'
SIZE = 1 << 16
OTHER_PORT = FILE_PORT + APART
GATE = os.path.join(os.path.abspath(PROGRAMS), "libcarousel-test-sync-gate.so")   # sync_gate.cpp


class Links(Case):
    """Two runs, by hand."""

    def durable_pair(self, frames, fps=60, **how):
        return self.pair(frames, fps=fps, size=SIZE, send=DURABLE, in_flight=16, **how)

    def test_the_sender_hears_of_no_frame_that_is_not_synced(self):
        pair = self.durable_pair(120, receive="sync = true\n")
        gate, count = (os.path.join(pair.folder, name) for name in ("gate", "count"))
        with open(gate, "w", encoding="utf-8"):
            pass
        pair.environment.update(LD_PRELOAD=GATE, CAROUSEL_TEST_SYNC_GATE=gate, CAROUSEL_TEST_SYNC_COUNT=count)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 16)   # all that may be in flight: B's sink has them, and its sync(2) lasts
        time.sleep(0.5)
        self.assertEqual(ledger(os.path.join(pair.folder, "carousel", "a", "ledger-send.bin")), {})
        self.assertEqual([pair.a.stage("send").get("frames"), os.path.exists(count)], [0, False])
        os.unlink(gate)
        self.whole(pair, 120)
        self.assertGreater(os.path.getsize(count), 0)

    def test_a_damaged_control_block_of_a_remote_host_is_rebuilt_at_its_sinks_frame(self):
        pair = self.durable_pair(240, fps=30)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 60)   # more than rings hold: the coordinator has released some
        self.damage(pair.b)
        self.expect_log(pair.b, r"the control block is damaged .*: the run restarts at frame \d+")
        self.whole(pair, 240)
        self.assertNotIn("has lost its ring", pair.a.text())
        first, last = pair.b.report()["repairs"][-1]["uncertain"]
        self.assertLess(first, last)
        self.assertIn(f"frames {first} to {last} were delivered and may be wrong, because words of the control block were damaged; they can't be repeated", pair.b.text())

    def restarted_with(self, pair, first):
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(30)
        pair.b.options = ["--first", str(first)]
        pair.b.start()

    def test_a_run_that_is_begun_beyond_what_the_sinks_have_is_sent_away_until_the_number_is_right(self):
        pair = self.durable_pair(150, fps=30)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 30)
        delivered = pair.b.lose()
        pair.b.start()
        self.expect_log(pair.a, r"has lost its ring, and begins at frame 0\.")
        first = int(re.search(r"start it with --first (\d+)", pair.a.text())[1])
        self.restarted_with(pair, first + 3)   # more than one durable sender may have in flight
        left_out = f"frames {first} to {first + 2} would be skipped: .*: end the receiving run, and start it with --first {first}"
        self.expect_log(pair.a, left_out)
        self.expect_log(pair.b, "a sender was disconnected: " + left_out)
        self.assertEqual(pair.b.stage("sink").get("frames") or 0, 0)
        self.restarted_with(pair, first)
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        check_report(pair.a, 150)
        pair.one_host(150)
        here = ledger(os.path.join(pair.folder, "b-ledger-sink.bin"))
        self.assertEqual({**delivered, **here}, ledger(os.path.join(pair.folder, "one-ledger-sink.bin")))

    def chain_with_lost_middle(self, frames, successors):
        """A, B and C by hand. B is durable, and lost when C has frames and A has received no acknowledgement: B's sync(2) lasts. Then B is restarted."""
        pair = self.durable_pair(frames, fps=30)
        there = {"address": "127.0.0.1", "token": "link.token", "bytes": SIZE, "format": format_of(SIZE)}
        middle = by_hand.SINK.format(of="receive", delay=0, more="turns = true\n", **there).replace('"sink"', '"middle"')
        pair.b = by_hand.Host(pair, "b", (by_hand.RECEIVE + by_hand.END).format(name="b", port=PORT, in_flight=16, **there) + "sync = true\n" + middle
                              + (by_hand.SEND + by_hand.END).format(of="middle", port=PORT + 65, in_flight=4, **there))
        c = by_hand.Host(pair, "c", (by_hand.RECEIVE + by_hand.END).format(name="c", port=PORT + 65, in_flight=4, **there) + successors
                         + by_hand.SINK.format(of="receive", delay=0, more="", **there))
        self.addCleanup(c.end)
        gate = os.path.join(pair.folder, "gate")
        with open(gate, "w", encoding="utf-8"):
            pass
        pair.environment.update(LD_PRELOAD=GATE, CAROUSEL_TEST_SYNC_GATE=gate)
        for host in (c, pair.b, pair.a):
            host.start()
        self.delivered(c, 4)
        pair.b.lose()
        os.unlink(gate)
        pair.b.start()
        return pair, c

    def test_by_hand_a_host_downstream_of_a_durable_one_accepts_its_successor_from_the_first_frame(self):
        pair, c = self.chain_with_lost_middle(90, "successors = true\n")
        hosts = (pair.a, pair.b, c)
        self.assertEqual([h.wait(60) for h in hosts], [0, 0, 0], "".join(h.text() for h in hosts))
        for host in hosts:
            check_report(host, 90)
        turned = by_hand.SINK.format(of="source", bytes=SIZE, delay=0, more="turns = true\n").replace('"sink"', '"middle"')
        one = by_hand.Host(pair, "one", by_hand.SOURCE.format(name="one", bytes=SIZE, more="") + turned
                           + by_hand.SINK.format(of="middle", bytes=SIZE, delay=0, more=""), ["--frames", "90"]).start()
        self.assertEqual(one.wait(60), 0, one.text())
        self.assertEqual(hash_in(c, "sink"), hash_in(one, "sink"))

    def test_by_hand_without_that_setting_the_successor_is_refused_with_the_reason(self):
        pair, c = self.chain_with_lost_middle(90, "")
        expected_text = r"If a durable host was lost, its new run may have to begin at an earlier frame\. .* successors = true"
        self.assertNotEqual(pair.b.wait(60), 0)
        self.assertRegex(pair.b.text(), expected_text)
        self.assertRegex(c.text(), "a sender was refused: .*" + expected_text)


del Case


class Files(unittest.TestCase):
    """One pipeline file."""

    def hosts(self, more_a="", more_b=""):
        return "".join(HOST.format(name=name, address="127.0.0.1", port=port, launcher=launcher, more=more)
                       for name, port, launcher, more in (("a", OTHER_PORT, "here", more_a), ("b", FILE_PORT, "none", more_b)))

    def there_and_back(self, hosts):
        """Its stages are on one host if `hosts` is empty."""
        return (SOURCE.format(bytes=SIZE) + SINK.format(name="middle", of="source", bytes=SIZE, more="turns = true\n" + ('host = "b"\n' if hosts else ""))
                + SINK.format(name="sink", of="middle", bytes=SIZE, more="") + hosts)

    def world(self):
        world = World(PROGRAMS)
        self.addCleanup(world.end)
        return world

    def started(self, world, text, *options):
        file = world.write("durable.toml", text)
        coordinator, remote = world.coordinator(file, *options), world.remote(file, "b", *options)
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        return coordinator, remote

    def on_one_host(self, world, frames):
        """As fast as possible."""
        one = world.coordinator(world.write("one.toml", self.there_and_back("")), "--frames", str(frames)).start()
        self.assertEqual(one.wait(60), 0, one.text())
        return hash_in(one, "sink")

    def test_frames_that_go_to_a_durable_host_and_come_back_are_lost_by_no_kill_and_not_with_that_host(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        # So slow that a busy machine, too, completes all that happens here before the last frame.
        world, options = self.world(), ("--frames", "540", "--fps", "30")
        expected = self.on_one_host(world, 540)
        coordinator, remote = self.started(world, self.there_and_back(self.hosts(more_b=DURABLE)), *options)
        coordinator.has_frames("sink", remote)
        victims = [(coordinator, s) for s in ("source", "source-to-b", "middle-from-b", "sink")] + [(remote, s) for s in ("source-from-a", "middle", "middle-to-a")]
        kill_in_turn(victims, random.Random(SEED))
        for host in (coordinator, remote):
            host.supervisor_is_killed()
        wait_for("frames since", lambda: (coordinator.stage("sink").get("frames") or 0) > 120)
        remote.lose()
        remote.start()
        coordinator.expect_log(r"host b restarts at frame \d+: frames that its sinks do not have are kept here")
        first = int(re.findall(r"host b restarts at frame (\d+)", coordinator.text())[-1])
        self.assertGreater(first, 0)
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        check_report(coordinator, 540)
        self.assertEqual([remote.report()[k] for k in ("first", "lost", "repeated", "torn")], [first, 0, 0, 0], remote.text())
        self.assertEqual(hash_in(coordinator, "sink"), expected)

    def test_a_durable_host_lost_before_any_acknowledgement_continues_from_the_first_frame(self):
        # Its frames are here again already, and none of them is known to be: its sync(2) lasts.
        world, options = self.world(), ("--frames", "60", "--fps", "60")
        expected = self.on_one_host(world, 60)
        file = world.write("durable.toml", self.there_and_back(self.hosts(more_b=DURABLE + "sync = true\n")))
        coordinator, remote = world.coordinator(file, *options), world.remote(file, "b", *options)
        gate = world.write("gate", "")
        remote.environment.update(LD_PRELOAD=GATE, CAROUSEL_TEST_SYNC_GATE=gate)
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        coordinator.has_frames("sink", remote, more_than=7)
        remote.lose()
        os.unlink(gate)
        remote.start()
        coordinator.expect_log("host b restarts at frame 0: frames that its sinks do not have are kept here")
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        for host in (coordinator, remote):
            check_report(host, 60)
        self.assertEqual(hash_in(coordinator, "sink"), expected)

    def test_a_durable_host_that_lost_all_processes_and_memory_restarts_from_its_folder(self):
        world, options = self.world(), ("--frames", "240", "--fps", "30")
        coordinator, remote = self.started(world, SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"')
                                 + self.hosts(more_b=DURABLE), *options)
        remote.has_frames("sink", coordinator, more_than=60)
        delivered = remote.lose_memory(self)
        remote.start()
        coordinator.expect_log(r"host b restarts at frame \d+: frames that its sinks do not have are kept here")
        first = int(re.search(r"restarts at frame (\d+)", coordinator.text())[1])
        self.assertTrue(0 < first <= len(delivered), (first, len(delivered)))
        self.assertEqual([coordinator.wait(60), remote.wait(30)], [0, 0], coordinator.text() + remote.text())
        self.assertEqual([remote.report()[k] for k in ("first", "frames", "lost", "repeated", "torn")], [first, 240, 0, 0, 0], remote.text())
        here = ledger(os.path.join(world.folder, "b-ledger-sink.bin"))
        self.assertEqual(min(here), first)
        one = world.coordinator(world.write("one.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more="")), "--frames", "240")
        self.assertEqual(one.start().wait(60), 0, one.text())
        self.assertEqual({**delivered, **here}, ledger(os.path.join(world.folder, "near-ledger-sink.bin")))

    def test_a_lost_durable_host_in_the_middle_loses_no_frame_of_the_host_downstream(self):
        world, options = self.world(), ("--frames", "240", "--fps", "30")
        expected = self.on_one_host(world, 240)
        text = (SOURCE.format(bytes=SIZE) + SINK.format(name="middle", of="source", bytes=SIZE, more='turns = true\nhost = "b"')
                + SINK.format(name="sink", of="middle", bytes=SIZE, more='host = "c"')
                + "".join(HOST.format(name=name, address="127.0.0.1", port=port, launcher="none", more=more)
                          for name, port, more in (("b", FILE_PORT, DURABLE), ("c", OTHER_PORT, ""))))
        coordinator, b = self.started(world, text, *options)
        c = world.remote(os.path.join(world.folder, "durable.toml"), "c", *options).start()
        c.has_frames("sink", coordinator, more_than=60)
        b.lose()
        b.start()
        coordinator.expect_log(r"host b restarts at frame [1-9]\d*: frames that its sinks do not have are kept here")
        self.assertEqual([h.wait(60) for h in (coordinator, b, c)], [0, 0, 0], coordinator.text() + b.text() + c.text())
        for host in (coordinator, c):
            check_report(host, 240)
        self.assertEqual(hash_in(c, "sink"), expected)

    def test_two_hosts_that_send_to_each_other_are_not_both_durable(self):
        world = self.world()
        coordinator = world.coordinator(world.write("both.toml", self.there_and_back(self.hosts(DURABLE, DURABLE)))).start()
        self.assertEqual(coordinator.wait(20), 2, coordinator.text())
        self.assertRegex(coordinator.text(), r'release = "durable" of \[hosts\.[ab]\]: frames go from host [ab] to host [ab] and back, and all hosts on the way are durable, '
                         'so that each would wait for the sinks of the others; set release = "committed" for one of these hosts')

    def test_a_host_notified_of_the_end_by_no_link_is_notified_by_the_coordinator(self):
        # The sending stage is killed after its supervisor has released it and before it has reported the end: it is not replaced.
        world = self.world()
        plan = world.write("plan", "source-to-b leaving kill 1\n")
        file = world.write("end.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"') + self.hosts(more_b=DURABLE))
        coordinator, remote = world.coordinator(file, "--frames", "12"), world.remote(file, "b", "--frames", "12")
        coordinator.environment["CAROUSEL_CRASH_PLAN"] = plan
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        self.assertEqual([coordinator.wait(60), remote.wait(60)], [0, 0], coordinator.text() + remote.text())
        self.assertTrue(os.path.exists(plan + ".1"))
        self.assertIn("this host has finished, and its link has not notified host b, so the coordinator sends the notification", coordinator.text())
        self.assertEqual(sorted(ledger(os.path.join(world.folder, "b-ledger-sink.bin"))), list(range(12)))


class Campaign(Links, Files):
    """All of it: too long for every change."""


del Links, Files
if __name__ == "__main__":
    name = sys.argv.pop(2)
    unittest.main(argv=[sys.argv[0], name, *sys.argv[2:]], verbosity=2)
