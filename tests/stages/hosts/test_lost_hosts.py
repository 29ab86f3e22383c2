"""A host of a link that is lost with all that it had, and one whose disk is full. Usage: test_lost_hosts.py FOLDER_OF_PROGRAMS"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, Case  # noqa: E402
from link_pair import END, RECEIVE, check_report, check_whole, format_of, ledger, wait_for  # noqa: E402

FRAMES = 150
DURABLE = 'release = "durable"\n'


class Lost(Case):
    def started(self, frames=FRAMES, fps=60, send="", **how):
        pair = self.pair(frames, fps=fps, send=send, in_flight=16, **how)
        pair.b.start()
        pair.a.start()
        return pair


class Long(Lost):
    def test_committed_frames_of_a_lost_receiver_are_lost_and_counted(self):
        pair = self.started()
        self.delivered(pair.b, 30)
        pair.b.lose()
        pair.b.start()
        self.assertEqual(pair.a.wait(30), 1)
        found = re.search(r"frames 0 to (\d+) were committed there and released here: (\d+) frames are lost", pair.a.text())
        self.assertTrue(found, pair.a.text())
        self.assertEqual(int(found[1]) + 1, int(found[2]))

    def test_a_run_that_begins_at_the_receivers_frame_continues_for_a_lost_sender(self):
        pair = self.started(300, send=DURABLE)
        self.delivered(pair.b, 30)
        pair.a.lose()
        pair.a.start()  # from frame 0: another run's, for all that B knows
        self.assertEqual(pair.a.wait(30), 1)
        found = re.search(r"frames up to (\d+) were received.*start the sending run with --first (\d+)", pair.a.text())
        self.assertTrue(found, pair.a.text())
        first = int(found[2])
        self.assertTrue(30 <= first <= int(found[1]) + 1, found[0])
        pair.a.options += ["--first", str(first)]
        pair.a.start()
        self.whole(pair, 300)
        self.assertEqual([pair.a.report()["first"], pair.b.report()["first"]], [first, 0])

    def test_a_receiver_that_was_lost_begins_in_the_middle_and_gets_what_its_sinks_have_not(self):
        pair = self.started(send=DURABLE)
        self.delivered(pair.b, 30)
        delivered = pair.b.lose()
        pair.b.start()  # from frame 0, which no host has any more
        self.expect_log(pair.a, r"has lost its ring, and begins at frame 0\.")
        first = int(re.search(r"start it with --first (\d+)", pair.a.text())[1])
        self.assertLessEqual(first, len(delivered))
        pair.b.process.send_signal(signal.SIGINT)
        pair.b.wait(30)
        pair.b.options = ["--first", str(first)]
        pair.b.start()
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        for host in (pair.a, pair.b):
            check_report(host, FRAMES)
        self.assertEqual(pair.b.report()["first"], first)
        pair.one_host(FRAMES)
        here = ledger(os.path.join(pair.folder, "b-ledger-sink.bin"))
        self.assertEqual(min(here), first)
        self.assertEqual({**delivered, **here}, ledger(os.path.join(pair.folder, "one-ledger-sink.bin")))

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
        self.assertEqual(len(re.findall(r"waits for a full disk", pair.b.text())), 1, pair.b.text())
        self.assertEqual([host.ps()["pipeline"]["state"] for host in (pair.a, pair.b)], ["running"] * 2)
        os.unlink(filler)
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        check_whole(pair, frames)


del Lost
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
