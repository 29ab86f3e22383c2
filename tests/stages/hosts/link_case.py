"""Shared by the tests of links. The program's first argument is the folder of programs."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_pair import END, SEND, SOURCE, Host, Pair, check_whole, run_id_in, wait_for  # noqa: E402
from seeds import seed  # noqa: E402

PROGRAMS = sys.argv[1]
SEED = seed(7)
# Below the ports that the system gives to clients (32,768 and above), and apart from those of runs over several hosts (20,500 and above).
PORT = 10000 + os.getpid() % 80 * 130


class Case(unittest.TestCase):
    def pair(self, frames, fps=0, **how):
        options = ["--frames", str(frames)] + (["--fps", str(fps)] if fps else [])
        p = Pair(PROGRAMS, how.pop("size", 1 << 18), port=PORT, options_a=options, **how)
        self.addCleanup(p.end)
        return p

    def other_sender(self, pair, **how):
        where = {"address": "127.0.0.1", "port": PORT, "token": "link.token", "more": "", "in_flight": 4, **how}
        size = where.pop("size", pair.size)
        text = (SOURCE + SEND + END).format(name="other", bytes=size, of="source", **where)
        other = Host(pair, "other", text, ["--frames", "20"])
        self.addCleanup(other.end)
        return other

    def expect_log(self, host, words, seconds=20):
        wait_for(f"{host.name} says \"{words}\"", lambda: re.search(words, host.text()), seconds)

    def delivered(self, host, frames):
        wait_for(f"{frames} frames in the sink of {host.name}", lambda: (host.stage("sink").get("frames") or 0) >= frames)

    def damage(self, host, at=0x2000, size=64):
        """Changes bytes of the control block; by default the sizes of parameter sets, which every seal depends on."""
        block = "/dev/shm/carousel-" + run_id_in(os.path.join(host.pair.folder, "carousel", host.name))
        with open(block, "r+b") as f:
            f.seek(at)
            bytes_of_it = f.read(size)
            f.seek(at)
            f.write(bytes(b ^ 0x5A for b in bytes_of_it))

    def whole(self, pair, frames):
        self.assertEqual([pair.a.wait(60), pair.b.wait(30)], [0, 0], pair.a.text() + pair.b.text())
        self.assertEqual(check_whole(pair, frames), pair.hash_on_one_host(frames))
