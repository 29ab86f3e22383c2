"""Two network namespaces joined by a veth pair, or three by a bridge, as hosts on one machine. Needs root, ip and (for silence) nft."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import skip  # noqa: E402

A_ADDRESS, B_ADDRESS, C_ADDRESS = "10.83.0.1", "10.83.0.2", "10.83.0.3"


def call(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, **more)


class Namespaces:
    """`ip netns exec` and not nsenter: UCX looks for its devices in /sys/class/net."""

    def __init__(self, hosts=2, otherwise=skip):
        """`otherwise(why)`, which must not return, is called if they are not available."""
        if os.geteuid() != 0 or not shutil.which("ip"):
            otherwise("network namespaces need root and ip")
        self.a, self.b, self.c = (f"carousel-{name}-{os.getpid()}" for name in "abc")
        self.remote, self.made = [self.b, self.c][:hosts - 1], []
        try:
            for name in (self.a, *self.remote):
                self.must("ip", "netns", "add", name)
                self.made.append(name)
                self.must("ip", "-n", name, "link", "set", "lo", "up")
            if hosts == 2:
                self.join("la", self.b, "lb")
                self.give(self.a, "la", A_ADDRESS)
            else:
                self.must("ip", "-n", self.a, "link", "add", "bridge", "type", "bridge")
                self.give(self.a, "bridge", A_ADDRESS)
                for coordinator, name, remote in (("la", self.b, "lb"), ("lac", self.c, "lc")):
                    self.join(coordinator, name, remote)
                    self.must("ip", "-n", self.a, "link", "set", coordinator, "master", "bridge", "up")
                self.give(self.c, "lc", C_ADDRESS)
            self.give(self.b, "lb", B_ADDRESS)
        except RuntimeError as e:
            self.end()
            otherwise(f"no network namespaces here: {e}")

    def must(self, *command):
        done = call(*command)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")

    def join(self, coordinator, name, remote):
        self.must("ip", "-n", self.a, "link", "add", coordinator, "type", "veth", "peer", "name", remote, "netns", name)

    def give(self, name, device, address):
        self.must("ip", "-n", name, "addr", "add", address + "/24", "dev", device)
        self.must("ip", "-n", name, "link", "set", device, "up")

    def inside(self, name):
        return ["ip", "netns", "exec", name]

    def can_be_silenced(self):
        if shutil.which("nft") is None:
            return False
        heard = self.drop_packets() and self.restore_packets()
        return heard

    def drop_packets(self, host=None):
        """Every packet to B, or to another remote host, is silently dropped."""
        rules = "table inet carousel {\n chain c {\n  type filter hook input priority 0; policy drop;\n }\n}\n"
        return call("ip", "netns", "exec", host or self.b, "nft", "-f", "-", input=rules).returncode == 0

    def restore_packets(self, host=None):
        return call("ip", "netns", "exec", host or self.b, "nft", "delete", "table", "inet", "carousel").returncode == 0

    def end(self):
        for name in self.made:
            call("ip", "netns", "del", name)
