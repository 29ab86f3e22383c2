"""A host of a link that is lost with all that it had, and one whose disk is full. Usage: test_lost_hosts.py FOLDER_OF_PROGRAMS Everyday|Long"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, Case  # noqa: E402
from link_pair import END, RECEIVE, check_whole, format_of, ledger, wait_for  # noqa: E402

FRAMES = 150
DURABLE = 'release = "durable"\n'


class Lost(Case):
    def started(self, frames=FRAMES, fps=60, send="", **how):
        pair = self.pair(frames, fps=fps, send=send, in_flight=16, **how)
        pair.b.start()
        pair.a.start()
        return pair

    def kept(self, host):
        """What the sink of a run that has ended delivered."""
        return ledger(host.report()["sinks"][0]["ledger"])

    def check_union(self, pair, before, after, frames):
        """Every frame is in one of the sink's lives, and those in both are the same."""
        one = ledger(pair.one_host(frames)["sinks"][0]["ledger"])
        self.assertEqual(sorted({**before, **after}), list(range(frames)))
        for each in (before, after):
            self.assertEqual(each, {n: one[n] for n in each})


class Everyday(Lost):
    def test_what_only_a_lost_receiver_had_comes_again_where_the_sender_waits_for_its_disk(self):
        pair = self.started(send=DURABLE)
        self.delivered(pair.b, 30)
        before = pair.b.lose()
        pair.b.start()                                       # begun as if nothing had been: it is told where to begin
        self.said(pair.a, r"begin it with --first \d+")
        first = int(re.findall(r"begin it with --first (\d+)", pair.a.text())[-1])
        self.assertEqual([n for n in range(first) if n not in before], [], "released, but not delivered")
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(20)
        pair.b.options = ["--first", str(first)]
        pair.b.start()
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        report = pair.b.report()
        self.assertEqual([report[k] for k in ("first", "frames", "lost", "repeated", "torn")], [first, FRAMES, 0, 0, 0])
        after = self.kept(pair.b)
        self.assertEqual(min(after), first)
        self.check_union(pair, before, after, FRAMES)

    def test_a_sender_that_was_lost_goes_on_where_the_receiver_is(self):
        pair = self.started()
        self.delivered(pair.b, 30)
        pair.a.lose()
        pair.a.start()                                       # from frame 0: the receiver has other frames of that number
        self.assertEqual(pair.a.wait(30), 1)
        first = re.search(r"begin it with --first (\d+) to go on there", pair.a.text())
        self.assertTrue(first, pair.a.text())
        pair.a.options += ["--first", first[1]]
        pair.a.start()
        self.whole_receiver(pair)

    def whole_receiver(self, pair):
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        report = pair.b.report()
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [FRAMES, 0, 0, 0])
        self.assertEqual(report["image_hash"], pair.hash_on_one_host(FRAMES))
        self.assertEqual([pair.a.report()[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])


class Long(Lost):
    def test_committed_frames_of_a_lost_receiver_are_lost_and_counted(self):
        pair = self.started()
        self.delivered(pair.b, 30)
        pair.b.lose()
        pair.b.start()
        self.assertEqual(pair.a.wait(30), 1)
        told = re.search(r"frames 0 to (\d+) have been committed there and released here: (\d+) frames are lost", pair.a.text())
        self.assertTrue(told, pair.a.text())
        self.assertEqual(int(told[1]) + 1, int(told[2]))

    def test_a_receiver_that_begins_too_far_on_is_sent_back_and_ends_nobody(self):
        pair = self.started(send=DURABLE)
        self.delivered(pair.b, 20)
        before = pair.b.lose()
        pair.b.options = ["--first", "1000"]
        pair.b.start()
        self.said(pair.a, r"would be left out: the receiving run begins at frame 1000")
        self.assertIsNone(pair.a.process.poll())
        first = int(re.findall(r"End the receiving run and begin it with --first (\d+)", pair.a.text())[-1])
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(20)
        pair.b.options = ["--first", str(first)]
        pair.b.start()
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        self.check_union(pair, before, self.kept(pair.b), FRAMES)

    def test_both_hosts_are_lost_one_behind_the_other_and_no_frame_is(self):
        pair = self.started(send=DURABLE)
        self.delivered(pair.b, 20)
        before = pair.b.lose()
        pair.b.start()
        self.said(pair.a, r"begin it with --first \d+")
        first = re.findall(r"begin it with --first (\d+)", pair.a.text())[-1]
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(20)
        pair.b.options = ["--first", first]
        pair.b.start()
        self.delivered(pair.b, 20)
        pair.a.lose()
        pair.a.start()
        self.assertEqual(pair.a.wait(30), 1)
        pair.a.options += ["--first", re.findall(r"begin it with --first (\d+) to go on there", pair.a.text())[-1]]
        pair.a.start()
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        self.check_union(pair, before, self.kept(pair.b), FRAMES)

    def test_a_full_disk_at_the_durable_end_holds_the_sender_and_loses_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("a small disk of its own needs root")
        disk = tempfile.mkdtemp(prefix="carousel-disk-")
        self.addCleanup(os.rmdir, disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk], check=False, capture_output=True).returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        size, frames, filler = 1 << 16, 40, os.path.join(disk, "filler")
        with open(filler, "wb") as f:
            f.write(bytes(3 << 20))
        pair = self.pair(frames, fps=0, size=size, send=DURABLE, in_flight=4)
        where = {"address": "127.0.0.1", "port": PORT, "token": "link.token", "in_flight": 4}
        record = '\n[[stage]]\nname = "sink"\nrun = "carousel-record"\ninputs = ["receive"]\n' \
                 f'out = "{disk}/frames.mcap"\ncompression = "none"\n'
        with open(pair.b.file, "w", encoding="utf-8") as f:
            f.write((RECEIVE + END).format(name="b", format=format_of(size), **where) + record)
        pair.b.start()
        pair.a.start()
        wait_for("the recorder waits for room", lambda: pair.b.stage("sink").get("waits_for") == "full disk")
        wait_for("the sender waits for it", lambda: pair.a.stage("send").get("waits_for") == "another host")
        self.assertLess(pair.a.stage("send").get("frames") or 0, frames)
        os.unlink(filler)
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        check_whole(pair, frames)


del Lost
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
