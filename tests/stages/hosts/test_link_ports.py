"""The ports on which the programs of a link listen, as the kernel reports them: a firewall's rules depend on that. In network
namespaces if they are available, and on loopback. Usage: test_link_ports.py FOLDER_OF_PROGRAMS"""
import os
import re
import shutil
import socket
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, Case  # noqa: E402
from namespaces import A_ADDRESS, B_ADDRESS, Namespaces, call  # noqa: E402

LISTENS = "0A"   # TCP_LISTEN, in the format of /proc/net/tcp
LINKS = 64       # ports after a link's own


def listening(pid):
    """(address, port) of each listening TCP socket of that process."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
        if found:
            inodes.add(found[1])
    out = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as f:
            for words in [line.split() for line in f][1:]:
                if words[3] == LISTENS and words[9] in inodes:
                    address, port = words[1].split(":")
                    out.append((socket.inet_ntoa(struct.pack("<I", int(address, 16))) if table == "tcp" else address, int(port, 16)))
    return sorted(out)


class Ports(Case):
    def check(self, pair, address_a, address_b):
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 5)
        sends, receives = listening(pair.a.stage("send")["pid"]), listening(pair.b.stage("receive")["pid"])
        print(f"send listening on {sends}, receive on {receives}", file=sys.stderr)
        self.assertIn((address_b, PORT), receives)
        self.assertGreaterEqual(len(receives), 2)   # its own port, and one for data
        for name, all_of, address in (("send", sends, address_a), ("receive", receives, address_b)):
            for at, port in all_of:
                self.assertEqual(at, address, f"{name} listening on {all_of}")
                self.assertTrue(PORT <= port <= PORT + LINKS, f"{name} listening on {all_of}; its ports are {PORT} to {PORT + LINKS}")

    def namespaces(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            self.skipTest("network namespaces need root and ip")
        net = Namespaces()
        self.addCleanup(net.end)
        return net

    def test_on_loopback_each_uses_the_given_address_and_the_documented_ports(self):
        self.check(self.pair(6000, fps=60), "127.0.0.1", "127.0.0.1")

    def test_of_several_networks_only_the_one_of_the_address_is_listened_to(self):
        net = self.namespaces()
        for name in (net.a, net.b):   # another network, which must not receive anything
            call("ip", "-n", name, "link", "add", "other", "type", "dummy")
            call("ip", "-n", name, "addr", "add", "10.84.0.1/24", "dev", "other")
            call("ip", "-n", name, "link", "set", "other", "up")
        self.check(self.pair(6000, fps=60, address=B_ADDRESS, inside_a=net.inside(net.a), inside_b=net.inside(net.b)), A_ADDRESS, B_ADDRESS)

    def test_an_address_that_is_not_its_devices_first_is_refused_since_ucx_would_listen_on_the_first(self):
        net = self.namespaces()
        call("ip", "-n", net.b, "addr", "add", "10.83.0.7/24", "dev", "lb")
        pair = self.pair(120, address="10.83.0.7", inside_a=net.inside(net.a), inside_b=net.inside(net.b))
        self.assertNotEqual(pair.b.start().wait(20), 0)
        self.expect_log(pair.b, f"10.83.0.7 is not the first address of lb, and UCX uses only the first: {B_ADDRESS}. ")


if __name__ == "__main__":
    sys.argv.pop(1)
    unittest.main(verbosity=2)
