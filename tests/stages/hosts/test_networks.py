"""Links over a network that fails and returns, or that is not a private one: two network namespaces.
Usage: test_networks.py FOLDER_OF_PROGRAMS"""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, SINK, SOURCE, World  # noqa: E402
from link_case import PROGRAMS, Case  # noqa: E402
from link_pair import Pair, check_report  # noqa: E402
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
            self.assertTrue(self.net.drop_packets())
            time.sleep(silent)
            self.assertTrue(self.net.restore_packets())
            time.sleep(0.4)
        self.whole(pair, 240)

    def test_frames_that_arrive_while_their_acknowledgements_do_not_come_once(self):
        if not self.net.can_be_silenced():
            self.skipTest("nft takes no rules here")
        pair = self.started(240)
        for silent in (0.6, 1.3, 2.5):
            self.assertTrue(self.net.drop_packets(self.net.a))
            time.sleep(silent)
            self.assertTrue(self.net.restore_packets(self.net.a))
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

    def test_public_addresses_in_one_file_need_insecure_on_both_hosts(self):
        public = {"a": "203.0.113.1", "b": "203.0.113.2"}   # reserved for documentation: no machine has them
        for name, device in (("a", "la"), ("b", "lb")):
            self.assertEqual(call("ip", "-n", getattr(self.net, name), "addr", "flush", "dev", device).returncode, 0)
            self.net.give(getattr(self.net, name), device, public[name])
        world, size = World(PROGRAMS), 1 << 14
        self.addCleanup(world.end)
        there = 'turns = true\nhost = "b"'
        file = world.write("public.toml", SOURCE.format(bytes=size)
                           + SINK.format(name="there", of="source", bytes=size, more=there)
                           + SINK.format(name="sink", of="there", bytes=size, more="")
                           + HOST.format(name="b", address=public["b"], port=47100, launcher="none", more="")
                           + HOST.format(name="a", address=public["a"], port=47100, launcher="here", more=""))
        coordinator, b = (make(file, *name, "--frames", "40", inside=self.net.inside(where)) for make, name, where in (
            (world.coordinator, (), self.net.a), (world.remote, ("b",), self.net.b)))
        for host in (coordinator, b):
            self.assertEqual(host.start().wait(20), 2, host.text())
            self.assertRegex(host.text(), r'address = "203\.0\.113\.[12]": expected a private address'
                             r'.* or set insecure = true \(for all hosts: --insecure\)')
        coordinator.start("--insecure")
        coordinator.expect_log("Start it there: carousel host --file .* --as b .*--insecure")
        b.start("--insecure")
        self.assertEqual([coordinator.wait(), b.wait()], [0, 0], coordinator.text() + b.text())
        for host in (coordinator, b):
            check_report(host, 40)


if __name__ == "__main__":
    Namespaces().end()   # if they are not available this program is skipped, with the reason
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
