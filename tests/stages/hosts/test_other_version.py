"""A build of another version at one end of a link, the shipped programs at the other.
Usage: test_other_version.py FOLDER_OF_PROGRAMS"""
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, PROGRAMS, Case  # noqa: E402
from link_pair import check_whole, wait_for  # noqa: E402
from processes import end_process  # noqa: E402

FRAMES, EVERY_S = 30, 5
OF_SENDER = r"no link to 127\.0\.0\.1 port \d+ for \d+ s: the other side uses version {} of the link protocol, " \
            r"but this side uses version {}: use the same build on both hosts\. Retrying indefinitely"
OF_RECEIVER = r"the sender uses version (\d+) of the link protocol, but this side uses version (\d+): use the same build on both hosts"


class IncompatiblePeer:
    """The end of the other version (other_version.cpp)."""
    name = "the other version"

    def __init__(self, case, pair, does):
        self.log = os.path.join(pair.folder, "other.log")
        with open(self.log, "w", encoding="utf-8") as log:
            program = os.path.join(PROGRAMS, "carousel-test-other-version")
            self.process = subprocess.Popen([program, does, "127.0.0.1", str(PORT), pair.token], stdout=log, stderr=log)
        case.addCleanup(end_process, self.process)

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self):
        end_process(self.process)


def pids(host):
    return {s["name"]: (s.get("pid"), s["restarts"]) for s in host.ps().get("stages") or []}


class OtherVersion(Case):
    def logged_every_5_s(self, host, words, since):
        """Waits until the host has logged it twice; since `since` it has not logged it more often than once per 5 s."""
        wait_for(f"{host.name} says \"{words}\" twice", lambda: len(re.findall(words, host.text())) > 1)
        self.assertLessEqual(len(re.findall(words, host.text())), 1 + (time.monotonic() - since) // EVERY_S, host.text())

    def versions(self, host, words):
        """(of the other side, of this one), from that host's log."""
        theirs, ours = (int(v) for v in re.search(words, host.text()).groups())
        self.assertEqual(theirs, ours + 1)
        return theirs, ours

    def test_a_receiver_names_both_versions_of_another_sender_and_accepts_the_right_one(self):
        pair = self.pair(FRAMES)
        pair.b.start()
        self.expect_log(pair.b, "listening on")
        wait_for("all of b's stages", lambda: sum(pid is not None for pid, _ in pids(pair.b).values()) == 2)
        before, since, incompatible_peer = pids(pair.b), time.monotonic(), IncompatiblePeer(self, pair, "sends")
        self.expect_log(pair.b, OF_RECEIVER)
        theirs, ours = self.versions(pair.b, OF_RECEIVER)
        self.logged_every_5_s(pair.b, OF_RECEIVER, since)
        self.expect_log(incompatible_peer, OF_SENDER.format(ours, theirs))
        self.assertIsNone(incompatible_peer.process.poll(), incompatible_peer.text())
        self.assertEqual(pids(pair.b), before, pair.b.text())
        self.assertEqual(pair.b.stage("sink").get("frames") or 0, 0)
        incompatible_peer.end()
        pair.a.start()
        self.whole(pair, FRAMES)

    def test_a_sender_names_both_versions_of_another_receiver_and_retries_until_the_right_one(self):
        pair = self.pair(FRAMES)
        incompatible_peer, since = IncompatiblePeer(self, pair, "receives"), time.monotonic()
        pair.a.start()
        words = OF_SENDER.format(r"(\d+)", r"(\d+)")
        self.expect_log(pair.a, words)
        theirs, ours = self.versions(pair.a, words)
        wait_for("the sender waits", lambda: pair.a.stage("send").get("waits_for") == "another host")
        before = pids(pair.a)
        self.logged_every_5_s(pair.a, words, since)
        tries = re.findall(r"a sender of version (\d+) says hello", incompatible_peer.text())
        self.assertGreaterEqual(len(tries), 3, incompatible_peer.text())
        self.assertEqual(set(tries), {str(ours)})
        self.assertNotRegex(incompatible_peer.text(), "a frame came|is no hello")
        self.assertEqual(pids(pair.a), before, pair.a.text())
        self.assertEqual({restarts for _, restarts in before.values()}, {0})
        incompatible_peer.end()
        pair.b.start()
        self.whole(pair, FRAMES)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
