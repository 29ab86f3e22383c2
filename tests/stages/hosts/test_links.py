"""Links between two real runs on loopback: kills, and errors of a user or attacks of an unauthenticated peer. Usage:
test_links.py FOLDER_OF_PROGRAMS Everyday|Long|Campaign"""
import ctypes
import json
import os
import platform
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, PROGRAMS, SEED, Case  # noqa: E402
from link_pair import END, RECEIVE, SEND, SINK, SOURCE, Host, check_whole, format_of, ledger, wait_for  # noqa: E402


def abort_as_if_by_itself(pid):
    """SIGABRT whose sender is the process itself: from another sender it counts as an external kill, and no number of those ends a run."""
    found = struct.pack("=iiiiii104x", signal.SIGABRT, 0, -1, 0, pid, os.getuid())   # siginfo_t: si_code SI_QUEUE, si_pid
    number = {"x86_64": 129, "aarch64": 138}[platform.machine()]                    # rt_sigqueueinfo
    if ctypes.CDLL(None, use_errno=True).syscall(number, pid, signal.SIGABRT, found) != 0:
        raise OSError(ctypes.get_errno(), "rt_sigqueueinfo")


class Everyday(Case):
    def test_frames_arrive_once_each_whatever_process_of_either_host_is_killed(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        pair = self.pair(480, fps=60)
        pair.b.start()
        pair.a.start()
        self.expect_log(pair.a, "is up after")
        victims = ["send", "receive", "source", "sink", "receive", "send"]
        dice.shuffle(victims)
        for victim in victims:
            time.sleep(dice.uniform(0.05, 0.3))
            host = pair.a if victim in ("send", "source") else pair.b
            wait_for(f"a process of {victim}", lambda h=host, v=victim: h.kill(v))
        for host in (pair.a, pair.b):
            wait_for(f"a supervisor of {host.name} that can be killed", host.kill_supervisor)
        self.whole(pair, 480)

    def test_a_receiver_that_comes_late_gets_every_frame(self):
        pair = self.pair(30)
        pair.a.options += ["--set", "frame_timeout_ms=1000"]
        pair.a.start()
        wait_for("ps says what it waits for", lambda: pair.a.stage("send").get("waits_for") == "another host")
        time.sleep(3)   # longer than a frame may take there: this wait is not charged to any stage
        self.assertEqual(pair.a.stage("send").get("restarts"), 0, pair.a.text())
        pair.b.start()
        self.whole(pair, 30)

    def test_what_these_programs_set_of_ucx_doctor_shows(self):
        settings = json.loads(subprocess.run([os.path.join(PROGRAMS, "carousel-send"), "--ucx"], capture_output=True, text=True, check=True).stdout)["set"]
        self.assertEqual([settings["UCX_CM_REUSEADDR"], settings["UCX_ERROR_SIGNALS"], settings["UCX_TCP_PORT_RANGE"]], ["y", "", None])
        out = subprocess.run([os.path.join(PROGRAMS, "carousel"), "doctor", "--json"], capture_output=True, text=True, check=False).stdout
        shown = json.dumps(json.loads(out))
        self.assertEqual([name for name in settings if name not in shown], [])
        for each in ("UCX_CM_REUSEADDR y", "UCX_ERROR_SIGNALS empty", "UCX_TCP_PORT_RANGE by each link"):
            self.assertIn(each, shown)

    def test_a_frame_arrives_with_all_that_it_carried(self):
        pair = self.pair(150, fps=60, size=4096, more="carries = true\n")
        with open(pair.a.file, "a", encoding="utf-8") as f:
            f.write("\n[parameters]\ngain = 7\n")
        pair.b.start()
        pair.a.start()
        # Both clocks are one here: the relation holds if its offset is within the error.
        clock = wait_for("the other host's clock is known", lambda: self.clock_of(pair.b, "receive"))
        self.assertLessEqual(abs(clock[0]), clock[1])
        self.assertLess(clock[1], 1000)
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        check_whole(pair, 150)
        sink = next(s for s in pair.b.report()["stages"] if s["name"] == "sink")
        self.assertEqual(sink["restarts"], 0, pair.b.text())
        self.assertGreater(sink["from_capture_ms"]["p50"], 3)
        self.assertGreater(sink["end_to_end_ms"]["p50"], 0)

    def clock_of(self, host, stage):
        try:
            with open(os.path.join(host.pair.folder, "carousel", host.name, "figures-" + stage), encoding="utf-8") as f:
                found = json.load(f)
        except OSError:
            return None
        return found["clock_offset_ms"] is not None and (found["clock_offset_ms"], found["clock_error_ms"])

    def test_a_wrong_token_lets_no_frame_in_and_ends_no_process(self):
        pair = self.pair(30)
        pair.make_token("other.token")
        pair.b.start()
        other = self.other_sender(pair, token="other.token").start()
        self.expect_log(other, "has another token for this link")
        pair.a.start()
        self.whole(pair, 30)
        self.assertIsNone(other.process.poll())

    def test_frames_of_another_kind_are_sent_away_with_both_descriptions_and_both_hosts_live(self):
        pair = self.pair(30)
        pair.b.start()
        other = self.other_sender(pair, size=4096).start()
        self.expect_log(pair.b, "a sender was disconnected: its frames are")
        wait_for("the sender waits", lambda: other.stage("send").get("waits_for") == "another host")
        self.assertEqual([s["restarts"] for s in other.ps()["stages"]], [0, 0])
        self.expect_log(other, r"its frames are .*4096.* of \d+ bytes, but the receiving stage writes .*262144")
        other.end()
        pair.a.start()
        self.whole(pair, 30)

    def test_addresses_that_everybody_reaches_need_a_word(self):
        pair = self.pair(1)
        for address, words in (("8.8.8.8", "is not a private address"), ("0.0.0.0", "numeric IPv4 address"), ("b", "numeric IPv4 address")):
            text = (RECEIVE + END + SINK).format(name="public", bytes=8, of="receive", delay=0, format=format_of(8), address=address, port=PORT,
                                                 token="link.token", more="", in_flight=4)
            host = Host(pair, "public", text).start()
            self.assertEqual(host.wait(20), 2)
            self.assertIn(words, host.text())

    def test_direct_sending_is_refused_for_what_the_cpu_compresses(self):
        pair = self.pair(1)
        for more, words in (('memory = "direct"\ncompress = "zstd"\n', r'memory = "direct" with compress = "zstd": frames must be in host memory'),
                            ('memory = "gpu"\n', 'memory = "gpu"')):
            text = (SOURCE + SEND + END + more).format(name="refused", bytes=8, of="source", address="127.0.0.1", port=PORT, token="link.token",
                                                       more="", in_flight=4)
            host = Host(pair, "refused", text, ["--frames", "1"]).start()
            self.assertEqual(host.wait(20), 2, host.text())
            self.assertIn(words, host.text())

    def test_frames_on_the_cpu_cross_by_direct_sending_too(self):
        pair = self.pair(40, send='memory = "direct"\n')
        pair.b.start()
        pair.a.start()
        self.whole(pair, 40)


class Long(Case):
    def test_frames_that_become_smaller_cross_the_link_compressed(self):
        for how in ("lz4", "zstd"):
            pair = self.pair(40, more="smooth = true\n", send=f'compress = "{how}"\n')
            pair.b.start()
            pair.a.start()
            self.whole(pair, 40)
            link = next(s for s in pair.a.report()["stages"] if s["name"] == "send")["link"]
            self.assertEqual(link["bytes"], 40 * pair.size, how)
            self.assertLess(link["bytes_on_the_way"], link["bytes"] / 4, how)
            pair.end()

    def test_a_second_run_does_not_get_into_a_ring_that_has_frames_of_another(self):
        pair = self.pair(900, fps=60)   # the first run continues until the second one has been refused permanently
        pair.b.start()
        pair.a.start()
        self.expect_log(pair.b, "frames of source come from run")
        wait_for("frames", lambda: (pair.b.stage("sink").get("frames") or 0) > 3)
        other = self.other_sender(pair).start()
        self.assertEqual(other.wait(30), 1)
        self.assertRegex(other.text(), r"is a new run, but the frames up to \d+ were received")
        self.whole(pair, 900)

    def test_a_lost_ring_is_reported_with_the_count_of_frames(self):
        pair = self.pair(2000, fps=60)
        pair.b.start()
        pair.a.start()
        wait_for("frames", lambda: (pair.b.stage("sink").get("frames") or 0) > 10)
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(30)
        pair.b.start()
        self.assertEqual(pair.a.wait(30), 1)
        found = re.search(r"frames 0 to (\d+) were committed there and released here: (\d+) frames are lost", pair.a.text())
        self.assertTrue(found, pair.a.text())
        self.assertEqual(int(found[1]) + 1, int(found[2]))

    def test_frames_that_only_a_rebuilt_receiver_has_are_delivered_from_its_memory(self):
        for guard in "gap", "canary":   # a canary makes the slots longer
            with self.subTest(guard):
                self.check_kept_frames(guard)

    def test_a_damaged_sender_takes_no_frame_back_that_the_other_host_has(self):
        pair = self.pair(90, fps=60)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 30)
        sent = len(ledger(os.path.join(pair.folder, "carousel", "a", "ledger-send.bin")))
        self.damage(pair.a)
        self.expect_log(pair.a, r"the control block is damaged .*: the run restarts at frame \d+")
        self.whole(pair, 90)
        self.assertGreaterEqual(int(re.search(r"the run restarts at frame (\d+)", pair.a.text())[1]), sent)
        self.assertRegex(pair.a.text(), r"frames \d+ to \d+ were delivered and may be wrong, .* another host has them")

    def check_kept_frames(self, guard):
        pair = self.pair(90, fps=60, size=1 << 16, delay_ms=25,   # the sink is slower than the source: B's ring is full
                         receive=f'[link.receive]\nguard = "{guard}"\n')
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 15)
        self.damage(pair.b, at=176, size=8)   # control_block::first_ring_sequence, which a process reads at its start
        self.expect_log(pair.b, r"the control block is damaged .*: the run restarts at frame \d+")
        self.whole(pair, 90)
        kept = re.search(r"(\d+) frames in the rings continue from memory", pair.b.text())
        self.assertTrue(kept, pair.b.text())
        self.assertGreater(int(kept[1]), 3)
        self.assertRegex(pair.b.text(), r"frames \d+ to \d+ continue from memory and may be wrong")
        self.assertNotIn("released here", pair.a.text())

    def test_a_port_in_use_is_named_once_and_waited_for(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)   # connections of other tests may still be in TIME_WAIT there
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
            pair = self.pair(60)
            pair.b.start()
            pair.a.start()
            named = rf"port {PORT} of 127.0.0.1 is in use by another program"
            wait_for("its name", lambda: re.search(named, pair.b.text()), 20)
            time.sleep(2)
            self.assertEqual([pair.a.process.poll(), pair.b.process.poll()], [None, None])
            self.assertEqual(pair.b.stage("receive").get("restarts"), 0)
        self.assertEqual([pair.a.wait(30), pair.b.wait(30)], [0, 0], pair.b.text())
        self.assertEqual(len(re.findall(named, pair.b.text())), 1)

    def recorded_hello(self, pair):
        """The first message of a sender's UCX to a receiver's UCX, before any byte of a link."""
        with socket.socket() as listener, socket.socket() as there:
            listener.bind(("127.0.0.1", 0))   # none of those after PORT: the receiver may have any of them
            listener.listen()
            listener.settimeout(20)
            other = self.other_sender(pair, port=listener.getsockname()[1]).start()
            here, _ = listener.accept()
            with here:
                here.settimeout(5)
                there.connect(("127.0.0.1", PORT))
                heard = here.recv(65536)
            other.end()
        return heard

    def test_mutated_hellos_may_end_the_receiving_process_but_no_frame(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        pair = self.pair(500, fps=60)
        pair.b.start()
        self.expect_log(pair.b, "listening on")
        heard = self.recorded_hello(pair)
        self.assertGreater(len(heard), 20)
        pair.a.start()
        self.expect_log(pair.a, "is up after")
        for _ in range(60):
            bytes_of_it = bytearray(heard)
            for _ in range(dice.choice([1, 1, 2, 4])):
                bytes_of_it[dice.randrange(len(heard))] ^= 1 << dice.randrange(8)
            with socket.socket() as s:
                s.settimeout(1)
                try:
                    s.connect(("127.0.0.1", PORT))
                    s.sendall(bytes_of_it)
                    time.sleep(dice.uniform(0.02, 0.1))
                except OSError:
                    pass   # its process is restarting
        deaths = pair.b.stage("receive").get("restarts")
        self.whole(pair, 500)
        self.assertEqual(pair.b.report()["dead_letter_count"], 0)
        print(f"60 mutated hellos: the receiving process died {deaths} times", file=sys.stderr)

    def test_a_receiver_that_unauthenticated_peers_kill_repeatedly_serves_the_first_frame(self):
        pair = self.pair(60, fps=60)
        pair.b.start()
        died = set()
        for _ in range(6):   # the fifth such death in a row ends any other stage
            pid = wait_for("a receiving process", lambda: pair.b.stage("receive").get("state") == "running"
                           and pair.b.stage("receive")["pid"] not in died and pair.b.stage("receive")["pid"])
            died.add(pid)
            abort_as_if_by_itself(pid)   # as UCX does on invalid bytes
        pair.a.start()
        self.whole(pair, 60)
        self.assertEqual(pair.b.report()["restarts"], 6)

    def test_ctrl_c_on_the_sending_host_ends_both_with_every_frame(self):
        pair = self.pair(100000, fps=60)
        pair.b.start()
        pair.a.start()
        wait_for("frames", lambda: (pair.b.stage("sink").get("frames") or 0) > 20)
        pair.a.process.send_signal(signal.SIGINT)
        self.assertEqual([pair.a.wait(30), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        self.assertEqual(pair.a.report()["frames"], pair.b.report()["frames"])
        check_whole(pair, pair.a.report()["frames"])

    def test_a_run_requested_to_end_without_its_link_names_the_missing_frames(self):
        pair = self.pair(30)
        pair.a.start()
        self.expect_log(pair.a, "no link to")
        pair.a.process.send_signal(signal.SIGINT)
        self.assertEqual(pair.a.wait(30), 75)
        self.assertRegex(pair.a.text(), r"send waits for another host: \d+ frames from frame 0 on were started, and their delivery is not confirmed")
        self.assertEqual(pair.a.report()["ending"], "no link to the other host")

    def test_nonsense_at_the_port_harms_no_frame(self):
        pair = self.pair(200, fps=60)
        pair.b.start()
        pair.a.start()
        self.expect_log(pair.a, "is up after")
        dice, stop = random.Random(SEED), threading.Event()

        def bother():
            while not stop.wait(0.05):
                with socket.socket() as s:
                    s.settimeout(1)
                    try:
                        s.connect(("127.0.0.1", PORT + dice.choice([0, 0, 1, 2])))
                        s.sendall(dice.randbytes(dice.choice([1, 7, 64, 700])))
                    except OSError:
                        pass

        thread = threading.Thread(target=bother)
        thread.start()
        try:
            self.whole(pair, 200)
        finally:
            stop.set()
            thread.join()


class Campaign(Long):
    """Too long for every change, and Long."""

    def test_no_number_of_deaths_gives_a_frame_up_in_a_stage_that_hands_frames_on(self):
        for forwards_frames, abandoned in (("true", 0), ("false", 1)):
            pair = self.pair(1)
            more = f"in_flight = 1\ndies_at = 3\nforwards_frames = {forwards_frames}\n"
            text = SOURCE.format(name="one", bytes=4096, more="") + SINK.format(of="source", bytes=4096, delay=0, more=more)
            one = Host(pair, "one", text, ["--frames", "10"]).start()
            self.assertEqual(one.wait(30), 4 if abandoned else 0, one.text())
            self.assertEqual((one.report()["frames"], one.report()["dead_letter_count"]), (10, abandoned))

    def test_the_port_is_taken_again_and_again(self):
        pair = self.pair(400, fps=100)
        pair.b.start()
        pair.a.start()
        for _ in range(20):
            wait_for("a receiving process", lambda: pair.b.stage("receive").get("state") == "running" and pair.b.kill("receive"))
            time.sleep(0.1)
        self.whole(pair, 400)

    def test_a_stopped_link_process_delays_no_process_for_long(self):
        pair = self.pair(480, fps=60)
        pair.b.start()
        pair.a.start()
        self.expect_log(pair.a, "is up after")
        for host, name in ((pair.b, "receive"), (pair.a, "send")):
            pid = wait_for(name, lambda h=host, n=name: h.stage(n).get("pid"))
            os.kill(pid, signal.SIGSTOP)
            wait_for("it is replaced", lambda h=host, n=name, p=pid: h.stage(n).get("pid") not in (None, p))
        self.whole(pair, 480)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
