"""The end of a run over two hosts, requested by Ctrl-C on the host where its frames don't begin. Usage: test_ends.py FOLDER_OF_PROGRAMS"""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOSTS, SINK, SOURCE, World  # noqa: E402
from link_pair import lose_run  # noqa: E402

PROGRAMS = sys.argv[1]
SIZE = 1 << 12


class Ends(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def begin(self, source_on="", sink_on="b"):
        """Both supervisors, with frames in flight: the one where they begin, the one where they end."""
        on = {"": "", "b": 'host = "b"\n'}
        file = self.world.write("chain.toml", SOURCE.format(bytes=SIZE) + on[source_on]
                                + SINK.format(name="sink", of="source", bytes=SIZE, more=on[sink_on])
                                + HOSTS)
        coordinator, remote = self.world.coordinator(file, "--fps", "60"), self.world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        first, last = (remote, coordinator) if source_on else (coordinator, remote)
        last.has_frames("sink", first)
        return first, last

    def whole(self, *hosts):
        frames = hosts[0].report()["frames"]
        for host in hosts:
            r = host.report()
            self.assertEqual([r[k] for k in ("lost", "repeated", "torn", "frames")], [0, 0, 0, frames], host.text()[-3000:])

    def reported_to_another(self, source_on, sink_on):
        first, last = self.begin(source_on, sink_on)
        first.process.send_signal(signal.SIGSTOP)
        last.interrupt()
        last.expect_log("this host ends when it has received the frames that the other hosts still send; they are notified", 5)
        first.process.kill()
        first.process.wait()
        first.start()
        self.assertEqual([first.wait(), last.wait()], [0, 0], first.text() + last.text())
        self.whole(first, last)

    def test_a_dead_coordinating_supervisor_with_an_end_request_has_a_notified_successor(self):
        self.reported_to_another("", "b")

    def test_a_dead_remote_supervisor_with_an_end_request_has_a_notified_successor(self):
        self.reported_to_another("b", "")

    def asked_and_killed(self, source_on, sink_on):
        """Both supervisors: the one that received the request, and the one that holds the forwarded order."""
        first, last = self.begin(source_on, sink_on)
        first.process.send_signal(signal.SIGSTOP)
        last.interrupt()
        last.expect_log("this host ends when it has received the frames that the other hosts still send; they are notified", 5)
        for host in (last, first):
            host.process.kill()
            host.process.wait()
        for host in (first, last):
            host.start()
        last.expect_log("the previous supervisor was requested to end the run", 20)
        self.assertEqual([first.wait(), last.wait()], [0, 0], first.text() + last.text())
        self.whole(first, last)

    def test_a_far_supervisor_that_was_asked_and_died_has_one_after_it_that_asks_again(self):
        self.asked_and_killed("", "b")

    def test_a_near_supervisor_that_was_asked_and_died_has_one_after_it_that_asks_again(self):
        self.asked_and_killed("b", "")

    def lost_after_order(self, source_on, sink_on, message):
        first, last = self.begin(source_on, sink_on)
        folder, pids = os.path.join(first.runtime, "carousel", first.run_name), [s["pid"] for s in first.ps()["stages"] if s.get("pid")]
        first.process.send_signal(signal.SIGSTOP)   # data that is sent to it now is lost with it
        last.interrupt()
        last.expect_log("this host ends when it has received the frames that the other hosts still send; they are notified", 5)
        lose_run(first.process, folder, pids)
        last.expect_log(f"{message} and has not reported its end; the frames received from it are still delivered", 30)
        return last

    def test_a_coordinator_lost_after_the_request_delays_the_end_by_seconds_only(self):
        remote = self.lost_after_order("", "b", "the coordinator is lost")
        self.assertEqual(remote.wait(), 0, remote.text())
        self.whole(remote)

    def test_a_remote_host_lost_after_the_request_delays_the_end_by_seconds_only(self):
        coordinator = self.lost_after_order("b", "", "host b is lost")
        self.assertEqual(coordinator.wait(), 75, coordinator.text())
        self.assertIn("host b has not reported the result of its part", coordinator.text())


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
