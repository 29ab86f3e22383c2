"""A real Slurm of two nodes: `carousel run` starts the supervisors on both by srun; programs started by srun take part in a run.
Usage: test_slurm.py FOLDER_OF_PROGRAMS. Skipped if Slurm isn't installed; this project does not install it."""
import json
import os
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "crash")]
from host_world import APART, HOST, PORT, SINK, SOURCE, World  # noqa: E402
from processes import wait_for  # noqa: E402
from slurm_world import Slurm  # noqa: E402
from test_port_places import PROGRAM as PORT_PROGRAM  # noqa: E402
from test_port_places import Case as PortCase  # noqa: E402

PROGRAMS = sys.argv[1]
SIZE = 1 << 16
FRAMES = "240"


class Launcher(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)
        # Both nodes are this machine: each has its own runtime directory, as on two.
        self.program = self.world.write("on-node", f'#!/bin/sh\nexport XDG_RUNTIME_DIR={self.world.folder}/runtime-$SLURMD_NODENAME\n'
                                        f'mkdir -p "$XDG_RUNTIME_DIR"\nexec {self.world.carousel} "$@"\n')
        os.chmod(self.program, 0o755)

    def host(self, name, node, port):
        return HOST.format(name=name, address="127.0.0.1", port=port, launcher="slurm", more=f'login = "{node}"\nprogram = "{self.program}"')

    def on_one_host(self):
        file = self.world.write("one.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more=""))
        one = self.world.coordinator(file, "--frames", FRAMES).start()
        self.assertEqual(one.wait(60), 0, one.text())
        return one.report()["image_hash"]

    def coordinator(self, frames=FRAMES):
        """The source is on this host; each node has a sink, which gets all frames."""
        sinks = "".join(SINK.format(name="sink-" + host, of="source", bytes=SIZE, more=f'host = "{host}"') for host in "ab")
        file = self.world.write("both.toml", SOURCE.format(bytes=SIZE) + sinks + self.host("a", "na", PORT) + self.host("b", "nb", PORT + APART))
        return self.world.coordinator(file, "--frames", str(frames), "--fps", "60")

    def check_end(self, coordinator, *taken_over):
        self.assertEqual(coordinator.wait(90), 0, coordinator.text())
        hosts = coordinator.report()["hosts"]
        self.assertEqual([[hosts[host][k] for k in ("frames", "lost", "repeated", "torn", "taken_over")] for host in "ab"],
                         [[int(FRAMES), 0, 0, 0, n] for n in taken_over])
        one = self.on_one_host()
        self.assertEqual([hosts[host]["image_hash"] for host in "ab"], [one, one])

    def test_srun_starts_a_supervisor_on_each_node_and_a_run_over_both_has_the_hash_of_one_host(self):
        self.check_end(self.coordinator().start(), 0, 0)

    def test_a_supervisor_that_srun_has_started_is_started_again_when_it_is_killed(self):
        coordinator = self.coordinator().start()
        wait_for("frames", lambda: (coordinator.stage("b/sink-b").get("frames") or 0) > 3, 40)
        os.kill(self.supervisor_on("nb", "both.b"), signal.SIGKILL)
        self.check_end(coordinator, 0, 1)

    def supervisor_on(self, node, run):
        output = subprocess.run([self.world.carousel, "ps", "-p", run, "--json"], capture_output=True, text=True, timeout=30, check=False,
                              env={**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.world.folder, "runtime-" + node)}).stdout
        return json.loads(output)["pipeline"]["pid"]


class Ports(PortCase):
    def test_a_reader_and_a_writer_that_are_steps_of_their_own_on_one_node_join_a_run(self):
        step = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=na")
        self.check_end(*(self.start(*step, PORT_PROGRAM, what, "places", port) for what, port in (("read", "analysis"), ("write", "camera"))))


if __name__ == "__main__":
    slurm = Slurm()
    try:
        result = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    finally:
        slurm.end()
    sys.exit(0 if result.wasSuccessful() else 1)
