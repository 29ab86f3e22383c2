"""Links over a network that comes and goes: two network namespaces. Usage: test_networks.py FOLDER_OF_PROGRAMS"""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PROGRAMS, Case  # noqa: E402
from link_pair import Pair  # noqa: E402
from namespaces import B_ADDRESS, Namespaces, call  # noqa: E402


class Networks(Case):
    def setUp(self):
        self.net = Namespaces()
        self.addCleanup(self.net.end)

    def started(self, frames):
        pair = Pair(PROGRAMS, 1 << 18, B_ADDRESS, inside_a=self.net.inside(self.net.a), inside_b=self.net.inside(self.net.b),
                    options_a=["--frames", str(frames), "--fps", "60"])
        self.addCleanup(pair.end)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 5)
        return pair

    def test_a_link_that_drops_every_second_loses_nothing(self):
        if not self.net.can_be_silenced():
            self.skipTest("nft takes no rules here")
        pair = self.started(240)
        for silent in (0.3, 0.6, 1.3, 0.9):
            self.assertTrue(self.net.silence())
            time.sleep(silent)
            self.assertTrue(self.net.speak())
            time.sleep(0.4)
        self.whole(pair, 240)

    def test_frames_that_arrive_while_their_acknowledgements_do_not_come_once(self):
        if not self.net.can_be_silenced():
            self.skipTest("nft takes no rules here")
        pair = self.started(240)
        for silent in (0.6, 1.3, 2.5):
            self.assertTrue(self.net.silence(self.net.a))
            time.sleep(silent)
            self.assertTrue(self.net.speak(self.net.a))
            time.sleep(0.4)
        self.whole(pair, 240)
        self.assertIn("is down", pair.a.text())

    def test_a_device_that_goes_down_and_comes_up_loses_nothing(self):
        pair = self.started(240)
        for rest in (0.3, 1.5):
            self.assertEqual(call("ip", "-n", self.net.a, "link", "set", "la", "down").returncode, 0)
            time.sleep(rest)
            self.assertEqual(call("ip", "-n", self.net.a, "link", "set", "la", "up").returncode, 0)
            time.sleep(0.5)
        self.whole(pair, 240)


if __name__ == "__main__":
    Namespaces().end()   # where there are none this program is skipped, with the reason
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
