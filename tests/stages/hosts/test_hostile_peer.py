"""Peers without the token that send messages of a length that no link has, concurrently with a sender that has the token.
Usage: test_hostile_peer.py FOLDER_OF_PROGRAMS"""
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, PROGRAMS, Case  # noqa: E402
from link_pair import wait_for  # noqa: E402
from processes import end_process  # noqa: E402

FRAMES = 45
# Per peer, in bytes: two that no receiver may assemble, one within the memory that a link may use, and one that sends nothing.
MESSAGES = (400 << 20, 400 << 20, 8 << 20, 0)
MOST_KIB = 32 << 10      # the allowance of 16 MiB and the buffers of connections
MOST_MS = 2000 + 1000    # handshake_ns, and a busy machine


def anonymous_kib(pid):
    """Private memory of that process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            found = re.search(r"^RssAnon:\s+(\d+) kB", f.read(), re.M)
    except OSError:
        return 0
    return int(found[1]) if found else 0


class HostilePeer(Case):
    def start_peers(self, pair):
        logs = [os.path.join(pair.folder, f"hostile{k}.log") for k in range(len(MESSAGES))]
        for path, message in zip(logs, MESSAGES):
            with open(path, "w", encoding="utf-8") as log:
                words = [os.path.join(PROGRAMS, "carousel-test-hostile-peer"), "127.0.0.1", str(PORT), str(message)]
                self.addCleanup(end_process, subprocess.Popen(words, stdout=log, stderr=log))
        return logs

    def closed_ms(self, path):
        """The time that each connection of a hostile peer existed."""
        with open(path, encoding="utf-8") as f:
            return [int(ms) for ms in re.findall(r"closed after (\d+) ms", f.read())]

    def test_messages_without_the_token_take_no_memory_and_the_sender_with_the_token_delivers(self):
        pair = self.pair(FRAMES, fps=30)
        pair.b.start()
        self.expect_log(pair.b, "listening on")
        receiver = pair.b.stage("receive")["pid"]
        before, most = anonymous_kib(receiver), 0
        logs = self.start_peers(pair)
        wait_for("each hostile peer has been closed", lambda: all(self.closed_ms(path) for path in logs), 10)
        pair.a.start()   # it connects while they send
        while pair.a.process.poll() is None:
            most = max(most, anonymous_kib(receiver))
            self.assertLess(most - before, MOST_KIB, pair.b.text())
            time.sleep(0.02)
        self.whole(pair, FRAMES)
        times = [ms for path in logs for ms in self.closed_ms(path)]
        print(f"memory grew by {most - before} KiB at most; {len(times)} connections were closed, the last after {max(times)} ms", flush=True)
        self.assertLess(max(times), MOST_MS)
        self.assertIn("a peer was disconnected: ", pair.b.text())
        self.assertNotIn("killed by", pair.b.text())   # the receiver was not killed


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
