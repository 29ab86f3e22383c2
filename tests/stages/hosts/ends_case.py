"""A case of tests of how runs over hosts end: one file, its coordinator and the remote hosts."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import APART, HOST, PORT, SINK, SOURCE, World  # noqa: E402

PROGRAMS = sys.argv[1]
SIZE = 1 << 12
ON_B = 'host = "b"'
GRACE = "[pipeline]\nsupervisor_grace_s = 60\n\n"


def host(name, k=0, launcher="none", more=""):
    return HOST.format(name=name, address="127.0.0.1", port=PORT + APART * k, launcher=launcher, more=more)


def source(name="source", on=""):
    return SOURCE.format(bytes=SIZE).replace('"source"', f'"{name}"') + (on + "\n" if on else "")


def sink(name="sink", of="source", more=""):
    return SINK.format(name=name, of=of, bytes=SIZE, more=more)


class Case(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def begin(self, text, *words, remote=("b",), dies=None):
        """The coordinator and the remote hosts' supervisors, all started.

        dies: a host, and a stage of it that is killed once: when it has all its frames, and before it reports the end."""
        file = self.world.write("chain.toml", text)
        coordinator, others = self.world.coordinator(file, *words), [self.world.remote(file, name, *words) for name in remote]
        if dies:
            host_of, stage = dies
            plan = self.world.write(f"plan-{stage}", f"{stage} leaving kill 1\n")
            next(s for s in (coordinator, *others) if s.name == host_of).environment["CAROUSEL_CRASH_PLAN"] = plan
        coordinator.start()
        coordinator.expect_log(f"waiting for host {remote[0]}")
        for other in others:
            other.start()
        return [coordinator, *others]

    def ends(self, *wanted, seconds=40):
        for supervisor, code in wanted:
            self.assertEqual(supervisor.wait(seconds), code, "\n".join(f"--- {s.name}:\n{s.text()[-2500:]}" for s, _ in wanted))

    def slow_coordinator(self, delay, more=""):
        """b begins the stream, and is done long before the coordinator's sink."""
        return self.begin(more + source(on=ON_B) + sink("slow", more=f"delay_ms = {delay}") + host("b") + host("a", 2, "here"), "--frames", "14")
