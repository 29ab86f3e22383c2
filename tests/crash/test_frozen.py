"""All processes of a run are frozen, or stopped by signals, and continue later: no process is replaced, no frame is charged with an attempt,
no port is taken away and no link goes down, because deadlines count only time in which the run could run.
Usage: test_frozen.py BUILD SECONDS [TEST...]"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "stages", "hosts")]
from cgroups import Group  # noqa: E402
from processes import descendants_of, end_process, wait_for  # noqa: E402

BUILD, SECONDS = os.path.abspath(sys.argv[1]), float(sys.argv[2])
CAROUSEL, PORT_IO = os.path.join(BUILD, "carousel"), os.path.join(BUILD, "carousel-test-port-io")
# Every kind of deadline is shorter than the time for which the run is frozen.
PIPELINE = f"""[pipeline]
name = "frozen"
device = "cpu"
frame_timeout_ms = 1000
stall_timeout_ms = 2000
latest_lease_ms = 100
supervisor_grace_s = 1
[[stage]]
name = "camera"
run = "port"
output = {{ value = "u64[512]" }}
[[stage]]
name = "middle"
run = "{BUILD}/carousel-test-number"
inputs = ["camera"]
work_ms = 3
[[stage]]
name = "sink"
run = "{BUILD}/carousel-test-number"
inputs = ["middle"]
sink = true
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""
# No ports, whose programs would notice the end of the supervisor.
STAGES = f"""[pipeline]
name = "frozen"
device = "cpu"
fps = 100
supervisor_grace_s = 3
[[stage]]
name = "source"
run = "{BUILD}/carousel-test-number"
[[stage]]
name = "sink"
run = "{BUILD}/carousel-test-number"
inputs = ["source"]
sink = true
"""


def freezer(test):
    """A group whose processes can be frozen; None where control groups can't be made."""
    try:
        group = Group("freezer")
    except SystemExit:
        return None
    test.addCleanup(group.remove)
    return group


class Frozen(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-frozen-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "PATH": BUILD + ":" + os.environ["PATH"]}
        self.started = []

    def start(self, *words):
        out = open(os.path.join(self.folder, f"out{len(self.started)}"), "w+", encoding="utf-8")
        self.addCleanup(out.close)
        process = subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        process.output = lambda: self.read(out.name)
        self.addCleanup(end_process, process)
        self.started.append(process)
        return process

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def freeze(self, processes, group):
        """All processes of the run at once, for SECONDS."""
        pids = [pid for each in processes for pid in (each.pid, *descendants_of(each.pid))]
        if group:
            for pid in pids:
                group.add(pid)
            frozen, thawed = (("cgroup.freeze", "1"), ("cgroup.freeze", "0")) if group.v2 else (("freezer.state", "FROZEN"), ("freezer.state", "THAWED"))
            self.addCleanup(group.set, *thawed)
            group.set(*frozen)
            time.sleep(SECONDS)
            group.set(*thawed)
            return
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(SECONDS)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def check_run(self, group):
        with open(os.path.join(self.folder, "frozen.toml"), "w", encoding="utf-8") as f:
            f.write(PIPELINE)
        run = self.start(CAROUSEL, "run", "frozen.toml", "--no-color", "--report", "report.json")
        writes = self.start(PORT_IO, "write", "frozen", "camera", "2000")
        reads = self.start(PORT_IO, "read", "frozen", "analysis")
        watches = self.start(PORT_IO, "latest", "frozen", "camera")
        programs = (writes, reads, watches)
        wait_for("frames", lambda: all("frame" in p.output() for p in programs))
        self.freeze(self.started, group)
        before = [len(p.output()) for p in programs]
        for _ in range(2):   # for longer than any deadline
            wait_for("frames after the thaw", lambda: all("frame" in p.output()[n:] for p, n in zip(programs, before)))
            time.sleep(0.75)
        self.assertEqual([p.poll() for p in programs], [None] * 3, [p.output()[-500:] for p in programs])
        run.terminate()
        log = run.output
        self.assertEqual([p.wait(60) for p in (run, *programs)], [0] * 4, log() + "".join(p.output()[-500:] for p in programs))
        report = json.loads(self.read(os.path.join(self.folder, "report.json")))
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn", "restarts")], [0] * 4, log())
        self.assertNotRegex(log(), "replac|died|seat now belongs|rebuil|attempt|stall")

    def test_a_frozen_run_continues_without_a_restart(self):
        group = freezer(self)
        if group is None:
            self.skipTest("no control group with a freezer can be made here")
        self.check_run(group)

    def test_a_run_whose_processes_were_all_stopped_continues_without_a_restart(self):
        self.check_run(None)

    def test_stages_without_a_supervisor_count_only_time_in_which_they_run(self):
        """The supervisor is killed; what remains is frozen for longer than supervisor_grace_s, and adopted."""
        group = freezer(self)
        if group is None:
            self.skipTest("no control group with a freezer can be made here")
        with open(os.path.join(self.folder, "frozen.toml"), "w", encoding="utf-8") as f:
            f.write(STAGES)
        run = self.start(CAROUSEL, "run", "frozen.toml", "--no-color")
        wait_for("frames", lambda: re.search(r"running, [1-9]\d* frames", run.output()))
        stages = descendants_of(run.pid)
        for pid in stages:
            group.add(pid)
        run.kill()
        run.wait()
        time.sleep(0.3)   # they notice it
        frozen, thawed = (("cgroup.freeze", "1"), ("cgroup.freeze", "0")) if group.v2 else (("freezer.state", "FROZEN"), ("freezer.state", "THAWED"))
        self.addCleanup(group.set, *thawed)
        group.set(*frozen)
        time.sleep(max(SECONDS, 4))
        group.set(*thawed)
        time.sleep(0.5)   # stages that count the frozen time end now
        again = self.start(CAROUSEL, "run", "frozen.toml", "--no-color", "--report", "report.json")
        time.sleep(2)
        wait_for("frames of the adopted run", lambda: re.search(r"running, [1-9]\d* frames", again.output()))
        again.terminate()
        self.assertEqual(again.wait(60), 0, again.output())
        self.assertRegex(again.output(), "2 stages alive")
        report = json.loads(self.read(os.path.join(self.folder, "report.json")))
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn", "restarts")], [0] * 4, again.output())

    @unittest.skipUnless(os.path.exists(os.path.join(BUILD, "carousel-send")), "this build has no links between hosts")
    def test_two_frozen_hosts_keep_their_link(self):
        from host_world import HOST, PORT, SINK, SOURCE, World   # takes a port of this machine
        group = freezer(self)
        world = World(BUILD)
        self.addCleanup(world.end)
        size = 1 << 16
        file = world.write("apart.toml", SOURCE.format(bytes=size) + SINK.format(name="sink", of="source", bytes=size, more='host = "b"\n')
                           + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more=""))
        coordinator, remote = world.coordinator(file, "--fps", "60"), world.remote(file, "b", "--fps", "60")
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        remote.start()
        remote.has_frames("sink", coordinator)
        self.freeze((coordinator.process, remote.process), group)
        remote.has_frames("sink", coordinator, more_than=(remote.stage("sink").get("frames") or 0) + 120)
        text = coordinator.text() + remote.text()   # before the end, which takes the link down
        coordinator.interrupt()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.assertNotRegex(text, "is down|sent nothing|does not respond|replac|died")
        for host in (coordinator, remote):
            self.assertEqual([host.report()[k] for k in ("lost", "repeated", "torn", "restarts")], [0] * 4, text[-3000:])


if __name__ == "__main__":
    result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if len(result.skipped) == result.testsRun else 0)
