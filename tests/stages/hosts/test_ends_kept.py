"""The result of a part of a run over hosts is stored for later queries, and counts. Usage: test_ends_kept.py FOLDER_OF_PROGRAMS"""
import json
import os
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ends_case import GRACE, ON_B, Case, host, sink, source  # noqa: E402
from link_pair import lose_run  # noqa: E402
from processes import wait_for  # noqa: E402

SOON = "[pipeline]\nsupervisor_grace_s = 2\n\n"   # a supervisor that is away for 7 s is abandoned


def kill(*supervisors):
    for s in supervisors:
        s.process.kill()
    for s in supervisors:
        s.process.wait()


def folder_of(s):
    return os.path.join(s.runtime, "carousel", s.run_name)


def pids_of(s):
    """The pids of its own host's stages."""
    return [row["pid"] for row in s.ps()["stages"] if row.get("pid") and "/" not in row["name"]]


class Kept(Case):
    def known_only_to_dead_coordinator(self):
        """The coordinator has stored how b has ended; both are dead, b with the unread permission to leave."""
        coordinator, b = self.slow_coordinator(700, GRACE)
        coordinator.has_frames("slow", b, 4)
        coordinator.process.send_signal(signal.SIGSTOP)
        b.expect_log("14 frames in")
        time.sleep(0.3)   # it has notified the coordinator, which hasn't read it
        b.process.send_signal(signal.SIGSTOP)
        coordinator.process.send_signal(signal.SIGCONT)
        wait_for("how b has ended is kept", lambda: os.path.exists(os.path.join(folder_of(coordinator), "ended-b.json")))
        kill(b, coordinator)
        return coordinator, b

    def b_leaves_at_once(self, coordinator, b):
        self.ends((b, 0), seconds=15)
        self.ends((coordinator, 0))
        self.assertEqual([coordinator.report()["frames"], coordinator.report()["hosts"]["b"]["frames"]], [14, 14])

    def test_a_host_whose_end_is_known_to_a_restarted_coordinator_may_leave_at_once(self):
        coordinator, b = self.known_only_to_dead_coordinator()
        b.start()
        b.expect_log("this host's part of a run has ended")
        coordinator.start()
        self.b_leaves_at_once(coordinator, b)

    def test_a_host_that_starts_after_a_coordinator_with_its_end_may_leave_at_once(self):
        coordinator, b = self.known_only_to_dead_coordinator()
        coordinator.start()
        coordinator.expect_log("adopted chain")
        b.start()
        self.b_leaves_at_once(coordinator, b)

    def test_a_dead_coordinating_supervisor_with_a_hosts_end_has_a_notified_successor(self):
        coordinator, b = self.slow_coordinator(700, GRACE)
        coordinator.has_frames("slow", b, 4)
        coordinator.process.send_signal(signal.SIGSTOP)
        b.expect_log("14 frames in")
        time.sleep(0.3)
        kill(coordinator)
        coordinator.start()
        self.b_leaves_at_once(coordinator, b)

    def test_a_killed_remote_supervisor_has_a_successor_that_notifies_the_frozen_coordinator(self):
        last = ON_B + "\ndies_at = 3\nmax_attempts = 1"   # an abandoned frame: an exit code that no other run would end with
        coordinator, b = self.begin(GRACE + source() + sink("slow", more="delay_ms = 700") + sink(more=last) + host("b"), "--frames", "20")
        coordinator.has_frames("slow", b, 3)
        coordinator.process.send_signal(signal.SIGSTOP)
        b.expect_log("the coordinator is lost")
        b.expect_log("20 frames in")
        kill(b)
        b.start()
        b.expect_log("this host's part of a run has ended")
        coordinator.process.send_signal(signal.SIGCONT)
        self.ends((coordinator, 4), (b, 4))
        self.assertEqual([coordinator.report()["frames"], coordinator.report()["hosts"]["b"]["frames"]], [20, 20])
        self.assertNotIn("lost its part", coordinator.text())
        self.assertEqual(os.listdir(folder_of(b)), ["dead-letters"])

    def lose_coordinator_after_last_frame(self, coordinator, b):
        coordinator.has_frames("slow", b)
        stages = pids_of(coordinator)
        coordinator.process.send_signal(signal.SIGSTOP)
        b.expect_log("14 frames in")
        lose_run(coordinator.process, folder_of(coordinator), stages)

    def test_the_unreported_end_of_a_finished_run_delays_no_other_run(self):
        coordinator, b = self.slow_coordinator(300, GRACE)
        self.lose_coordinator_after_last_frame(coordinator, b)
        kill(b)
        b.start()
        b.expect_log("this host's part of a run has ended")
        coordinator.start()
        self.ends((coordinator, 0), (b, 0))
        self.assertEqual([coordinator.report()["frames"], b.report()["frames"]], [14, 14])

    def test_a_host_that_is_done_and_waits_is_there_for_the_next_run_of_the_near_one(self):
        coordinator, b = self.slow_coordinator(300, GRACE)
        self.lose_coordinator_after_last_frame(coordinator, b)
        coordinator.start()
        self.ends((coordinator, 0), (b, 0))
        self.assertEqual([coordinator.report()["frames"], b.report()["frames"]], [14, 14])

    def test_a_finished_waiting_host_is_shown_so_by_ps(self):
        coordinator, b = self.slow_coordinator(700, GRACE)
        coordinator.has_frames("slow", b)
        kill(coordinator)
        b.expect_log("14 frames in")
        asked = time.monotonic()
        answer = b.ps()["pipeline"]
        self.assertLess(time.monotonic() - asked, 3)
        self.assertEqual(answer["state"], "done")
        self.assertRegex(answer["state_text"], r"done \(waiting for the disconnected coordinator, to report the result of this host, \d+ s more at most\)")
        self.assertIn("waiting for the coordinator", b.command("ps").stdout)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.connect(os.path.join(folder_of(b), "control.sock"))
            control.send(b'{"type": "rebuild"}')   # its result is reported: it starts nothing again
            self.assertIn("chain.b is done", control.recv(10_000).decode())
        coordinator.start()
        self.ends((coordinator, 0), (b, 0))

    def test_a_host_that_sends_to_one_without_a_coordinator_ends_with_a_message(self):
        coordinator, b, c = self.begin(SOON + source() + sink("mid", more=ON_B + "\nturns = true") + sink("last", "mid", 'host = "c"') + host("b") + host("c", 1),
                                "--fps", "60", remote=("b", "c"))
        c.has_frames("last", coordinator)
        coordinator.process.send_signal(signal.SIGSTOP)
        c.expect_log("coordinator is lost")
        c.interrupt()
        c.expect_log("has not reported its end", 30)
        c.expect_log(r"chain\.c: \d+ frames in")
        time.sleep(2)   # now b takes no more, and the coordinator has frames for it
        coordinator.process.send_signal(signal.SIGCONT)
        self.ends((c, 0), (coordinator, 1))
        self.assertRegex(coordinator.text(), "error: host b still has frames for host c: the part of the run on host c has ended, and these frames are lost")
        self.assertRegex(coordinator.text(), "host b has failed: its part of the run has ended, and it did not receive the last frames of this host")
        self.assertNotEqual(b.wait(20), 0)

    def test_a_part_that_has_failed_ends_the_run_also_where_a_dead_supervisor_alone_heard_so(self):
        coordinator, b = self.begin(GRACE + source() + sink(more=ON_B + '\ndies_at = 20\nmax_attempts = 1\nrestart = "no"') + sink("nsink") + host("b"), "--fps", "20")
        coordinator.has_frames("nsink", b, 3)
        kill(coordinator)
        b.expect_log("error: stage sink has failed")
        wait_for("b keeps how it has ended", lambda: os.path.exists(os.path.join(folder_of(b), "ended.json")))
        with open(os.path.join(folder_of(b), "ended.json"), encoding="utf-8") as f:
            kept = json.load(f)
        # As by a coordinator that has received it, and was killed before it ended the run for that.
        with open(os.path.join(folder_of(coordinator), "ended-b.json"), "w", encoding="utf-8") as f:
            json.dump({"run": kept["coordinator_run"], "ended": kept["ended"]}, f)
        kill(b)
        coordinator.start()
        self.ends((coordinator, 1))
        self.assertRegex(coordinator.text(), r"host b has failed: chain\.b: .*failed: sink: signal 6")
        self.assertEqual(coordinator.report()["hosts"]["b"]["exit_code"], 1)

    def test_ctrl_c_here_reaches_a_remote_host_through_the_next_coordinating_supervisor(self):
        coordinator, b = self.begin(source() + sink(more="delay_ms = 700") + source("source2", ON_B) + sink("sink2", "source2", ON_B) + host("b"), "--fps", "60")
        b.has_frames("sink2", coordinator)
        b.process.send_signal(signal.SIGSTOP)   # data that is sent to it now is lost with it
        coordinator.interrupt()
        coordinator.expect_log("interrupted: finishing frames in flight")
        kill(b, coordinator)
        for each in (coordinator, b):
            each.start()
        coordinator.expect_log("adopted chain")
        self.ends((coordinator, 0), (b, 0))

    def test_a_frame_given_up_on_a_remote_host_counts_for_the_run(self):
        coordinator, b = self.begin(source() + sink(more=ON_B + "\ndies_at = 5\nmax_attempts = 1") + host("b"), "--fps", "60", "--frames", "30")
        self.ends((coordinator, 4), (b, 4))
        self.assertEqual([coordinator.report()[k] for k in ("frames", "lost", "ending")], [30, 0, "complete"])
        self.assertRegex(coordinator.text(), r"host b: chain\.b: 30 frames in .*1 given up")
        self.assertEqual([each["ring_sequence"] for each in coordinator.report()["hosts"]["b"]["dead_letters"]], [5])

    def test_a_lost_host_with_its_own_stream_cuts_no_other_hosts_frames_off(self):
        coordinator, b, c = self.begin(SOON + source("own", ON_B) + sink("bsink", "own", ON_B) + source(on='host = "c"') + sink("slow", more="delay_ms = 150")
                                + host("b") + host("c", 1) + host("a", 2, "here"), "--fps", "60", remote=("b", "c"))
        b.has_frames("bsink", coordinator)
        b.lose()
        coordinator.expect_log("host b is lost")
        time.sleep(8)
        coordinator.has_frames("slow", c, 25)
        coordinator.interrupt()
        self.ends((c, 0), (coordinator, 75))
        self.assertIn("host b has not reported the result of its part", coordinator.text())
        self.assertEqual(coordinator.report()["frames"], c.report()["frames"])


del Case
if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
