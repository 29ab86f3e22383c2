"""Links between two real runs on loopback: kills, and what a user or a stranger may do wrong. Usage:
test_links.py FOLDER_OF_PROGRAMS Everyday|Long"""
import os
import random
import re
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_pair import END, RECEIVE, SEND, SINK, SOURCE, Host, Pair, check_whole, format_of, wait_for  # noqa: E402

PROGRAMS = sys.argv[1]
SEED = int(os.environ.get("CAROUSEL_SEED", "7"))
PORT = 20000 + os.getpid() % 400 * 65


class Case(unittest.TestCase):
    def pair(self, frames, fps=0, **how):
        options = ["--frames", str(frames)] + (["--fps", str(fps)] if fps else [])
        p = Pair(PROGRAMS, how.pop("size", 1 << 18), port=PORT, options_a=options, **how)
        self.addCleanup(p.end)
        return p

    def other_sender(self, pair, **how):
        where = {"address": "127.0.0.1", "port": PORT, "token": "link.token", **how}
        size = where.pop("size", pair.size)
        text = (SOURCE + SEND + END).format(name="other", bytes=size, of="source", **where)
        other = Host(pair, "other", text, ["--frames", "20"])
        self.addCleanup(other.end)
        return other

    def said(self, host, words, seconds=20):
        wait_for(f"{host.name} says \"{words}\"", lambda: re.search(words, host.text()), seconds)

    def whole(self, pair, frames):
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        self.assertEqual(check_whole(pair, frames), pair.hash_on_one_host(frames))


class Everyday(Case):
    def test_frames_arrive_once_each_whatever_process_of_either_host_is_killed(self):
        print(f"seed {SEED} (CAROUSEL_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        pair = self.pair(240, fps=60)
        pair.b.start()
        pair.a.start()
        self.said(pair.a, "is up after")
        victims = ["send", "receive", "source", "sink", "receive", "send"]
        dice.shuffle(victims)
        for victim in victims:
            time.sleep(dice.uniform(0.05, 0.3))
            host = pair.a if victim in ("send", "source") else pair.b
            wait_for(f"a process of {victim}", lambda h=host, v=victim: h.kill(v))
        pair.a.kill_supervisor()
        pair.b.kill_supervisor()
        self.whole(pair, 240)

    def test_a_receiver_that_comes_late_gets_every_frame(self):
        pair = self.pair(30)
        pair.a.start()
        wait_for("ps says what it waits for", lambda: pair.a.stage("send").get("waits_for") == "another host")
        pair.b.start()
        self.whole(pair, 30)

    def test_a_wrong_token_gets_nothing_in_and_ends_nobody(self):
        pair = self.pair(30)
        pair.make_token("other.token")
        pair.b.start()
        other = self.other_sender(pair, token="other.token").start()
        self.said(other, "does not know this link's token")
        pair.a.start()
        self.whole(pair, 30)
        self.assertIsNone(other.process.poll())

    def test_frames_of_another_kind_are_refused_with_both_descriptions_and_the_receiver_lives(self):
        pair = self.pair(30)
        pair.b.start()
        other = self.other_sender(pair, size=4096).start()
        self.assertEqual(other.wait(30), 1)
        self.assertRegex(other.text(), r"its frames are .*4096.* of \d+ bytes, but the receiving stage is to write .*262144")
        pair.a.start()
        self.whole(pair, 30)

    def test_addresses_that_everybody_reaches_need_a_word(self):
        pair = self.pair(1)
        for address, words in (("8.8.8.8", "is no private one"), ("0.0.0.0", "numeric IPv4 address"), ("b", "numeric IPv4 address")):
            text = (RECEIVE + END + SINK).format(name="public", bytes=8, of="receive", delay=0, format=format_of(8), address=address, port=PORT,
                                                 token="link.token")
            host = Host(pair, "public", text).start()
            self.assertEqual(host.wait(20), 2)
            self.assertIn(words, host.text())


class Long(Case):
    def test_a_second_run_does_not_get_into_a_ring_that_has_frames_of_another(self):
        pair = self.pair(120, fps=60)
        pair.b.start()
        pair.a.start()
        self.said(pair.b, "frames of source come from run")
        wait_for("frames", lambda: (pair.b.stage("sink").get("frames") or 0) > 3)
        other = self.other_sender(pair).start()
        self.assertEqual(other.wait(30), 1)
        self.assertRegex(other.text(), r"is not the one whose frames up to \d+ are here")
        self.whole(pair, 120)

    def test_a_ring_that_was_lost_is_told_with_the_count_of_frames(self):
        pair = self.pair(2000, fps=60)
        pair.b.start()
        pair.a.start()
        wait_for("frames", lambda: (pair.b.stage("sink").get("frames") or 0) > 10)
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(30)
        pair.b.start()
        self.assertEqual(pair.a.wait(30), 1)
        told = re.search(r"frames 0 to (\d+) have been committed there and released here: (\d+) frames are lost", pair.a.text())
        self.assertTrue(told, pair.a.text())
        self.assertEqual(int(told[1]) + 1, int(told[2]))

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
            pair = self.pair(1)
            self.assertEqual(pair.b.start().wait(40), 1)
        self.assertRegex(pair.b.text(), rf"port {PORT} of 127.0.0.1 is in use by another program")

    def test_nonsense_at_the_port_harms_no_frame(self):
        pair = self.pair(200, fps=60)
        pair.b.start()
        pair.a.start()
        self.said(pair.a, "is up after")
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
