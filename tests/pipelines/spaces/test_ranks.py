"""Ranks of MPI on one node as clients of a space, by the example's program. Under mpirun, and by hand with ranks that are killed.
Usage: test_ranks.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER. Skipped where the build has found no MPI, or there is no mpirun."""
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from space_world import PROGRAMS, Spaces, wait_for  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import skip  # noqa: E402

RANKS, MPIRUN = os.path.join(PROGRAMS, "carousel-test-ranks"), shutil.which("mpirun")
TASKS, VALUES = 400, 1024
SUM = VALUES * TASKS * (TASKS - 1) // 2 + TASKS * VALUES * (VALUES - 1) // 2


class Ranks(Spaces):
    def numbers(self, output):
        m = re.search(r"^(\d+) results, sum (\d+), (\d+) again$", output, re.M)
        self.assertIsNotNone(m, output)
        return [int(x) for x in m.groups()]

    def test_ranks_under_mpirun_share_tasks_and_blocks(self):
        self.hold("lab")
        environment = {**self.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "4", RANKS, "lab", str(TASKS)], env=environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.numbers(done.stdout), [TASKS, SUM, 0])
        self.assertIn(f"all ranks: {TASKS} tasks", done.stdout)
        wait_for("the end of all clients", lambda: not self.clients_of("lab"), 10)

    def test_ranks_that_are_killed_cost_no_task_and_no_block(self):
        self.hold("lab")
        first = self.start(RANKS, "lab", str(TASKS), "0")
        others = {k: self.start(RANKS, "lab", str(TASKS), str(k)) for k in (1, 2, 3)}
        killed = 0
        while killed < 6 and first.poll() is None:
            rank = 1 + killed % 3
            wait_for("its work", lambda r=rank: self.holds(others[r].pid) or first.poll() is not None, 20)
            if first.poll() is not None:
                break
            self.kill(others[rank])
            others[rank] = self.start(RANKS, "lab", str(TASKS), str(rank))
            killed += 1
            time.sleep(0.01)
        output = first.communicate(timeout=60)[0]
        got, total, again = self.numbers(output)
        print(f"{killed} ranks killed at work, {again} results came again", flush=True)
        self.assertGreaterEqual(killed, 3)
        self.assertEqual((got, total), (TASKS, SUM))
        for p in others.values():
            self.assertEqual(p.wait(30), 0)
        wait_for("the end of all clients", lambda: not self.clients_of("lab"), 10)
        figures = {p["name"]: p["figures"] for p in self.spaces("-p", "lab")["lab"]["primitives"]}
        self.assertEqual((figures["tasks"]["waiting"], figures["tasks"]["claimed"], figures["tasks"]["dead_letters"]), (0, 0, 0))
        self.assertEqual(figures["results"]["blocks"], 0)

    def holds(self, pid):
        """Returns whether this client has claimed a task."""
        return any(h["as"] == "tasks" for h in self.clients_of("lab").get(pid, {}).get("holds", []))


if __name__ == "__main__":
    if not os.access(RANKS, os.X_OK):
        skip("the build has found no MPI (Debian and Ubuntu: libopenmpi-dev)")
    if not MPIRUN:
        skip("there is no mpirun (Debian and Ubuntu: openmpi-bin)")
    unittest.main(argv=sys.argv[:1], verbosity=2)
