"""Which readers a durable sender waits for, in two runs on loopback, and what is reported while it waits.
Usage: test_counted_readers.py FOLDER_OF_PROGRAMS"""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PROGRAMS, Case  # noqa: E402
from link_pair import end_process, hash_in, wait_for  # noqa: E402

DURABLE = 'release = "durable"\n'
SIZE = 1 << 12
EYE = '\n[[stage]]\nname = "eye"\nrun = "port"\ninputs = ["receive"]\nvacant = "skip"\n'
GATE = os.path.join(os.path.abspath(PROGRAMS), "libcarousel-test-sync-gate.so")   # sync_gate.cpp


class CountedReaders(Case):
    def durable_pair(self, frames, **how):
        return self.pair(frames, size=SIZE, send=DURABLE, in_flight=16, **how)

    def changed(self, host, words, by):
        """Replaces its pipeline file."""
        with open(host.file, encoding="utf-8") as f:
            text = f.read()
        self.assertIn(words, text)
        with open(host.file, "w", encoding="utf-8") as f:
            f.write(text.replace(words, by, 1))

    def recorder(self, pair):
        """A program in the port "eye" of B."""
        with open(os.path.join(pair.folder, "recorder.log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen([pair.carousel, "record", "-p", "b", "eye", "--out", os.path.join(pair.folder, "eye.mcap")],
                                       env=pair.environment, cwd=pair.folder, stdout=log, stderr=log)
        self.addCleanup(end_process, process)
        wait_for("a program is in the port", lambda: pair.b.stage("eye").get("state") == "running")

    def test_a_program_that_attaches_to_a_port_that_skips_stops_no_durable_sender(self):
        # The sink is slower than frames come: the port is passed by frames that the sink has yet to write.
        pair = self.durable_pair(300, delay_ms=8)
        self.changed(pair.b, '\n[[stage]]\nname = "sink"', EYE + '\n[[stage]]\nname = "sink"')
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 40)   # these have passed the port by
        self.recorder(pair)
        self.delivered(pair.b, (pair.b.stage("sink").get("frames") or 0) + 60)   # more than may be in flight
        self.assertGreater(pair.b.stage("eye").get("frames") or 0, 0)
        self.whole(pair, 300)
        eye = next(s for s in pair.b.report()["sinks"] if s["stage"] == "eye")
        self.assertEqual(eye["counted"], False)
        self.assertGreaterEqual(eye["skipped"], 16)

    def test_a_frame_that_no_reader_can_write_any_more_ends_the_run_by_name(self):
        # The ledger of B's sink loses frame 12 while B's sync(2) for one of the first frames lasts, so A has not released it.
        pair = self.durable_pair(120, receive="sync = true\n", delay_ms=40)
        self.changed(pair.b, 'name = "b"\n', 'name = "b"\nstall_timeout_ms = 1000\n')
        gate = os.path.join(pair.folder, "gate")
        with open(gate, "w", encoding="utf-8"):
            pass
        pair.environment.update(LD_PRELOAD=GATE, CAROUSEL_TEST_SYNC_GATE=gate)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 16)   # all that may be in flight
        with open(os.path.join(pair.folder, "carousel", "b", "ledger-sink.bin"), "r+b") as f:
            f.seek(12 * 64)
            f.write(bytes(64))
        os.unlink(gate)
        self.assertEqual(pair.b.wait(30), 1, pair.b.text())
        self.assertRegex(pair.b.text(), r"frame 12 is lost: it is not in the files of sink, and no ring has it any more")

    def test_a_wait_for_another_host_names_the_frame_and_the_reader(self):
        pair = self.durable_pair(60, receive="sync = true\n")
        for host in (pair.a, pair.b):
            self.changed(host, f'name = "{host.name}"\n', f'name = "{host.name}"\nstall_timeout_ms = 500\n')
        gate = os.path.join(pair.folder, "gate")
        with open(gate, "w", encoding="utf-8"):
            pass
        pair.environment.update(LD_PRELOAD=GATE, CAROUSEL_TEST_SYNC_GATE=gate)
        pair.b.start()
        pair.a.start()
        self.expect_log(pair.a, r"send waits for another host: frame 0 is not in the files of all sinks of the host at 127\.0\.0\.1 port \d+")
        self.expect_log(pair.b, r"receive waits for another host, from which frame 16 has not arrived")
        self.assertFalse(re.search("is lost: it is not in the files", pair.b.text()))
        os.unlink(gate)
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        self.assertEqual(hash_in(pair.b, "sink"), pair.one_host(60)["image_hash"])


del Case
if __name__ == "__main__":
    sys.argv.pop(1)
    unittest.main(verbosity=2)
