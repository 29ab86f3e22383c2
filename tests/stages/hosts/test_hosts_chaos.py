"""`carousel chaos` on a pipeline over two hosts, on loopback: victims on both, one account. Usage: test_hosts_chaos.py FOLDER_OF_PROGRAMS"""
import json
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, PORT, SINK, SOURCE, World  # noqa: E402
from processes import end_process, wait_for  # noqa: E402
from seeds import seed  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[1])
SEED = seed(5)
SIZE, FAULTS = 1 << 16, 10


class Chaos(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def start(self, name, words):
        """A program in a separate runtime directory: (process, its lines so far)."""
        runtime, log = (os.path.join(self.world.folder, name + end) for end in ("-runtime", ".log"))
        os.makedirs(runtime, exist_ok=True)
        with open(log, "ab") as out:
            process = subprocess.Popen([self.world.carousel, *words], env={**os.environ, "XDG_RUNTIME_DIR": runtime}, cwd=self.world.folder,
                                       stdout=out, stderr=out)
        self.addCleanup(end_process, process)

        def text():
            with open(log, encoding="utf-8", errors="replace") as f:
                return f.read()
        return process, text

    def test_victims_are_on_both_hosts_and_no_frame_is_harmed(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        file = self.world.write("chain.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"\n')
                                + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more=""))
        report, done = os.path.join(self.world.folder, "chaos.json"), os.path.join(self.world.folder, "faults.jsonl")
        chaos, output = self.start("chaos", ["chaos", file, "--device", "cpu", "--fps", "60", "--count", str(FAULTS), "--rate", "2", "--seed", str(SEED),
                                           "--faults", "kill,term,abort,supervisor", "--report", report, "--log", done])
        # Host b is started only by this test: once for the run, once for the run without faults.
        for run in (1, 2):
            asked = wait_for(f"the words for host b, run {run}", lambda r=run: (
                (all_ := re.findall(r"waiting for host b .*Start it there: carousel (host .*?)   \(", output()))[r - 1:] or chaos.poll() is not None)
                and all_, 120)
            self.assertGreaterEqual(len(asked), run, output())
            self.start(f"b{run}", shlex.split(asked[run - 1]) + ["--no-color"])
        self.assertEqual(chaos.wait(150), 0, output())
        with open(report, encoding="utf-8") as f:
            r = json.load(f)
        with open(done, encoding="utf-8") as f:
            faults = [json.loads(line) for line in f]
        self.assertEqual([r[k] for k in ("passed", "lost", "repeated", "torn", "dead_letters", "untouched_deaths", "faults")],
                         [True, 0, 0, 0, 0, 0, FAULTS], r["failures"])
        self.assertEqual(r["image_hash"], r["calm"]["image_hash"])
        self.assertIsNotNone(r["image_hash"])
        hit = {f["seat"] for f in faults}
        self.assertTrue({s for s in hit if s.startswith("b/")} and {s for s in hit if "/" not in s}, hit)
        here = sum("/" not in f["seat"] and f["seat"] != "(supervisor)" for f in faults)
        self.assertGreater(sum(k["detection_ms"]["count"] for k in r["kinds"].values()), here)   # deaths on host b are reported, too
        self.assertEqual([f for f in os.listdir(self.world.folder) if f.endswith(".token")], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
