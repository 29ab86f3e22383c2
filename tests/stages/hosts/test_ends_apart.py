"""The end of a run over hosts while a supervisor, or a host, is away at a critical moment. Usage: test_ends_apart.py FOLDER_OF_PROGRAMS"""
import mmap
import os
import re
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ends_case import GRACE, ON_B, PROGRAMS, Case, host, sink, source  # noqa: E402
from host_world import PORT  # noqa: E402
from link_pair import lose_run, run_id_in  # noqa: E402



class Apart(Case):
    def test_a_second_host_that_also_begins_the_stream_is_notified_again(self):
        coordinator, b = self.begin(source() + sink() + source("source2", ON_B) + sink("sink2", "source2", ON_B) + host("b"), "--fps", "60")
        b.has_frames("sink2", coordinator)
        b.process.send_signal(signal.SIGSTOP)
        coordinator.interrupt()
        coordinator.expect_log("interrupted: finishing frames in flight")
        b.process.kill()
        b.process.wait()
        b.start()
        self.ends((coordinator, 0), (b, 0))

    def test_a_finished_host_reports_its_end_and_cuts_no_other_hosts_frames_off(self):
        coordinator, b, c = self.begin(source("own", ON_B) + sink("bsink", "own", ON_B) + source(on='host = "c"') + sink("slow", more="delay_ms = 100")
                                + host("b") + host("c", 1) + host("a", 2, "here"), "--fps", "60", "--frames", "150", remote=("b", "c"))
        self.assertEqual(b.wait(), 0)
        coordinator.has_frames("slow", c, 25)
        coordinator.interrupt()
        self.ends((coordinator, 0), (c, 0))
        self.assertEqual(coordinator.report()["frames"], c.report()["frames"])

    def test_ctrl_c_reaches_the_others_where_all_of_this_host_is_done(self):
        coordinator, b = self.begin(source() + sink() + source("source2", ON_B) + sink("sink2", "source2", ON_B + "\ndelay_ms = 300") + host("b"),
                             "--fps", "60", "--frames", "100")
        coordinator.expect_log("chain: done", 20)
        coordinator.interrupt()
        self.ends((coordinator, 0), (b, 0))
        self.assertLess(b.report()["frames"], 100)

    def test_two_presses_reach_a_host_whose_supervisor_starts_after_them(self):
        coordinator, b = self.begin(source() + sink(more=ON_B + "\ndelay_ms = 300") + host("b"), "--fps", "60")
        b.has_frames("sink", coordinator)
        b.process.send_signal(signal.SIGSTOP)
        coordinator.interrupt()
        coordinator.expect_log("interrupted: finishing frames in flight")
        coordinator.interrupt()
        time.sleep(0.3)
        b.process.kill()
        b.process.wait()
        b.start()
        self.assertNotEqual(b.wait(20), 0)
        self.assertNotEqual(coordinator.wait(20), 0)

    def test_frames_in_a_rebuilt_ring_whose_maker_is_done_continue_from_memory_or_end_the_run(self):
        for headers_too in False, True:
            with self.subTest(headers_too):
                coordinator, b = self.slow_coordinator(1000)
                self.ends((b, 0))
                block = "/dev/shm/carousel-" + run_id_in(os.path.join(coordinator.runtime, "carousel", coordinator.run_name))
                with open(block, "r+b") as f, mmap.mmap(f.fileno(), 0) as all_words:
                    if headers_too:   # the frame segments are at the end of the block: none of its frames is proved any more
                        size = len(all_words)
                        for at in range(size - size // 2, size - 63, 64):
                            if any(all_words[at:at + 64]):
                                all_words[at + 8] ^= 0x5A
                    all_words[0x2000:0x2040] = bytes(v ^ 0x5A for v in all_words[0x2000:0x2040])
                self.ends((coordinator, 1 if headers_too else 0))
                if headers_too:
                    self.assertRegex(coordinator.text(), "host b has failed: its part of the run has ended, and the frames that this host still expects from it are lost")
                else:
                    self.assertRegex(coordinator.text(), r"frames \d+ to 13 continue from memory and may be wrong")
                    self.assertEqual(coordinator.report()["frames"], 14)

    def test_a_host_requested_to_end_that_left_the_coordinator_reports_on_return(self):
        coordinator, b = self.begin(source() + sink(more=ON_B) + host("b"), "--fps", "60")
        b.has_frames("sink", coordinator)
        coordinator.process.send_signal(signal.SIGSTOP)
        b.expect_log("coordinator is lost")
        b.interrupt()
        b.expect_log("has not reported its end", 30)
        coordinator.process.send_signal(signal.SIGCONT)
        self.ends((b, 0), (coordinator, 1))
        self.assertRegex(coordinator.text(), "host b has failed: its part of the run has ended, and it did not receive the last frames of this host")

    def test_a_join_of_streams_from_two_hosts_ends_with_the_shorter_one_and_a_message(self):
        coordinator, b = self.begin(source() + source("short", ON_B + "\nends_at = 30") + sink(of='source", "short', more=ON_B) + host("b"), "--fps", "60")
        self.ends((b, 0), (coordinator, 1))
        self.assertEqual([b.report()[k] for k in ("frames", "lost", "ended_by")], [30, 0, "short"])
        self.assertRegex(coordinator.text(), "host b has failed: its part of the run has ended, and it did not receive the last frames of this host")

    def test_a_third_host_that_reads_a_lost_one_ends_with_what_it_has(self):
        coordinator, b, c = self.begin(source(on=ON_B) + sink() + sink("sinkc", more='host = "c"') + host("b") + host("c", 1) + host("a", 2, "here"),
                                "--fps", "60", remote=("b", "c"))
        coordinator.has_frames("sink", b)
        c.has_frames("sinkc", coordinator)
        b.lose()
        coordinator.interrupt()
        coordinator.expect_log("host b is lost and has not reported its end", 40)
        self.ends((c, 0), (coordinator, 75))

    def test_an_end_that_comes_together_with_the_beginning_is_carried_out(self):
        coordinator, b = self.begin(source(on=ON_B) + sink() + sink("sinkc", more='host = "c"') + host("b") + host("c", 1) + host("a", 2, "here"),
                             "--fps", "60")
        b.expect_log("waits for")
        time.sleep(1)   # they have compared their plans
        b.process.send_signal(signal.SIGSTOP)
        c = self.world.remote(os.path.join(self.world.folder, "chain.toml"), "c", "--fps", "60")
        c.start()
        coordinator.expect_log("c/carousel.*begins")   # so have these, and the coordinator has begun
        coordinator.interrupt()
        time.sleep(0.5)
        b.process.send_signal(signal.SIGCONT)
        self.ends((coordinator, 0), (b, 0), (c, 0))

    def test_a_stream_that_ends_before_its_first_frame_ends_the_hosts_that_wait_for_it(self):
        slow = os.path.join(self.world.folder, "slow")
        with open(slow, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\ntest "$1" = --describe || sleep 2\nexec {os.path.abspath(PROGRAMS)}/carousel-test-bytes "$@"\n')
        os.chmod(slow, 0o755)
        coordinator, b, c = self.begin(source(on=ON_B).replace("carousel-test-bytes", slow) + sink() + sink("sinkc", more='host = "c"')
                                + host("b") + host("c", 1) + host("a", 2, "here"), "--fps", "60", remote=("b", "c"))
        coordinator.expect_log("chain.b: begins")
        coordinator.interrupt()
        coordinator.expect_log("host b has finished, and its link has not notified host c, so the coordinator sends the notification")
        self.ends((coordinator, 0), (b, 0), (c, 0))
        self.assertEqual([h.report()["frames"] for h in (coordinator, b, c)], [0, 0, 0])

    def test_an_end_reported_by_no_link_holds_for_a_join_with_a_longer_stream(self):
        coordinator, b = self.begin(source(on="ends_at = 30") + source("own", ON_B) + sink(of='source", "own', more=ON_B) + host("b"),
                             "--fps", "60", dies=("near", "source-to-b"))
        b.expect_log("the stream of source-from-here ends before frame 30")
        self.ends((coordinator, 0), (b, 0))
        self.assertEqual([b.report()[k] for k in ("frames", "lost", "ended_by")], [30, 0, "source-from-here"])

    def test_a_takeover_from_a_supervisor_notified_of_an_end_ends_no_other_host(self):
        for reader, on, other in (("near", "", ON_B), ("b", ON_B, "")):
            with self.subTest(reader=reader):
                readers = sink(more=on + "\ndelay_ms = 400")
                concurrent = source("own", other) + sink("last", "own", other + "\ndelay_ms = 900")
                hosts = host("b") + host("c", 1) + host("a", 2, "here")
                coordinator, b, c = self.begin(source(on='host = "c"') + readers + concurrent + hosts, "--frames", "12", remote=("b", "c"),
                                        dies=("c", "source-to-" + ("a" if reader == "near" else "b")))
                coordinator.expect_log("its link has not notified " + ("this host" if reader == "near" else "host b"))
                (coordinator if reader == "near" else b).supervisor_is_killed()
                self.ends((coordinator, 0), (b, 0), (c, 0))
                self.assertEqual([h.report()["frames"] for h in (coordinator, b, c)], [12, 12, 12])

    def test_ctrl_c_during_a_rebuild_cuts_nothing_off(self):
        coordinator, b = self.begin(source() + sink(more=ON_B) + host("b", more='release = "durable"'), "--fps", "60")
        b.has_frames("sink", coordinator)
        block = "/dev/shm/carousel-" + run_id_in(os.path.join(b.runtime, "carousel", b.run_name))
        b.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        with open(block, "r+b") as f:
            f.seek(0x2000)
            there = f.read(64)
            f.seek(0x2000)
            f.write(bytes(v ^ 0x5A for v in there))
        b.interrupt()
        b.process.send_signal(signal.SIGCONT)
        self.ends((b, 0), (coordinator, 0))
        self.assertEqual(coordinator.report()["frames"], b.report()["frames"])

    def test_who_takes_the_near_run_over_knows_how_a_host_has_ended(self):
        coordinator, b = self.slow_coordinator(1000)
        self.ends((b, 0))
        self.assertIsNone(coordinator.process.poll())
        coordinator.process.kill()
        coordinator.process.wait()
        coordinator.start()
        self.ends((coordinator, 0))
        self.assertEqual(coordinator.report()["frames"], 14)
        self.assertEqual(coordinator.report()["hosts"]["b"]["frames"], 14)

    def test_a_host_that_is_done_waits_for_the_near_one_as_long_as_that_may_come_back(self):
        coordinator, b = self.slow_coordinator(1500, GRACE)
        coordinator.has_frames("slow", b)
        coordinator.process.kill()
        coordinator.process.wait()
        time.sleep(14)   # longer than by the default
        self.assertIsNone(b.process.poll(), b.text()[-1500:])
        coordinator.start()
        self.ends((coordinator, 0), (b, 0))

    def test_ctrl_c_ends_a_host_that_is_done_and_waits_for_a_near_one_that_is_lost(self):
        coordinator, b = self.slow_coordinator(300, GRACE)
        coordinator.has_frames("slow", b)
        folder, pids = os.path.join(coordinator.runtime, "carousel", coordinator.run_name), [s["pid"] for s in coordinator.ps()["stages"] if s.get("pid")]
        coordinator.process.kill()
        coordinator.process.wait()
        time.sleep(6)   # its stages continue, and take the remaining frames
        lose_run(coordinator.process, folder, pids)
        b.expect_log("chain.b: 14 frames in")
        self.assertIsNone(b.process.poll(), b.text()[-1500:])
        b.interrupt()
        self.assertEqual(b.wait(5), 0)

    def test_an_external_program_at_a_dead_supervisors_port_ends_no_run(self):
        coordinator, b = self.begin(source() + sink(more=ON_B) + host("b"), "--fps", "60")
        b.has_frames("sink", coordinator)
        b.process.kill()
        b.process.wait()
        with socket.socket() as port:
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port.bind(("127.0.0.1", PORT))
            port.listen()
            port.settimeout(10)
            coordinator_connection = port.accept()[0]
            coordinator_connection.settimeout(5)
            hello = coordinator_connection.recv(1000)
            coordinator_connection.sendall(hello[:8] + os.urandom(400))
            coordinator.expect_log("has a different token for this pipeline", 5)
            coordinator_connection.close()
        b.start()
        coordinator.expect_log("host b is back", 10)
        coordinator.interrupt()
        self.ends((coordinator, 0), (b, 0))

    def test_frames_that_are_lost_with_a_host_are_counted_from_the_first_of_the_run(self):
        coordinator, b = self.begin(source() + sink(more=ON_B) + host("b"), "--fps", "60", "--frames", "500", "--first", "200")
        b.has_frames("sink", coordinator, 10)
        b.lose()
        b.start()
        self.ends((coordinator, 1))
        self.assertRegex(coordinator.text(), r"frames 200 to \d+", coordinator.text()[-2500:])
        first, last, lost = map(int, re.search(r"frames (\d+) to (\d+).*?: (\d+) frames are lost", coordinator.text()).groups())
        self.assertEqual(lost, last - first + 1)


del Case
if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
