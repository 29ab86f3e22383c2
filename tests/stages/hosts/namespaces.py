"""Two network namespaces joined by a veth pair, as two hosts on one machine. Needs root, ip and (for silence) nft."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_pair import skip  # noqa: E402

A_ADDRESS, B_ADDRESS = "10.83.0.1", "10.83.0.2"


def call(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, **more)


class Namespaces:
    """`ip netns exec` and not nsenter: UCX looks for its devices in /sys/class/net."""

    def __init__(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            skip("network namespaces need root and ip")
        self.a, self.b = f"carousel-a-{os.getpid()}", f"carousel-b-{os.getpid()}"
        made = call("ip", "netns", "add", self.a)
        if made.returncode != 0:
            skip("no network namespaces here: " + made.stderr.strip())
        call("ip", "netns", "add", self.b)
        pair = call("ip", "-n", self.a, "link", "add", "la", "type", "veth", "peer", "name", "lb", "netns", self.b)
        for name, device, address in ((self.a, "la", A_ADDRESS), (self.b, "lb", B_ADDRESS)):
            call("ip", "-n", name, "addr", "add", address + "/24", "dev", device)
            call("ip", "-n", name, "link", "set", device, "up")
            call("ip", "-n", name, "link", "set", "lo", "up")
        if pair.returncode != 0:
            self.end()
            skip("no veth pair here: " + pair.stderr.strip())

    def inside(self, name):
        return ["ip", "netns", "exec", name]

    def can_be_silenced(self):
        if shutil.which("nft") is None:
            return False
        heard = self.silence() and self.speak()
        return heard

    def silence(self):
        """Every packet that B gets is dropped, and nobody is told."""
        rules = "table inet carousel {\n chain c {\n  type filter hook input priority 0; policy drop;\n }\n}\n"
        return call("ip", "netns", "exec", self.b, "nft", "-f", "-", input=rules).returncode == 0

    def speak(self):
        return call("ip", "netns", "exec", self.b, "nft", "delete", "table", "inet", "carousel").returncode == 0

    def end(self):
        for name in (self.a, self.b):
            call("ip", "netns", "del", name)
