"""`carousel bench ipc` as a user starts it. Usage: test_bench_ipc.py FOLDER_OF_PROGRAMS."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAMS = os.path.abspath(sys.argv[1])


class BenchIpc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carousel-bench-ipc-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.runtime = os.path.join(self.folder, "runtime")
        os.mkdir(self.runtime, 0o700)

    def bench(self, *words, before=()):
        return subprocess.run([*before, os.path.join(PROGRAMS, "carousel"), "bench", "ipc", *words], capture_output=True, text=True,
                              check=False, timeout=110, env={**os.environ, "XDG_RUNTIME_DIR": self.runtime, "CUDA_VISIBLE_DEVICES": ""})

    def test_all_tables_with_figures_that_agree(self):
        plot, report = (os.path.join(self.folder, name) for name in ("p.svg", "r.json"))
        done = self.bench("--quick", "--processes", "1,3", "--json", report, "--plot", plot)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        with open(report, encoding="utf-8") as f:
            report = json.load(f)
        self.assertEqual([m["kind"] for m in report["memory"]], ["local", "memfd of another process"])
        for m in report["memory"]:
            self.assertTrue(m["verified"])
            for key in ("read_gb_s", "write_gb_s", "copy_gb_s", "chase_ns", "open_us"):
                self.assertGreater(m[key], 0)
            self.assertAlmostEqual(m["ratio_to_local"], m["read_gb_s"] / report["memory"][0]["read_gb_s"])
        means = [h["means"] for h in report["hops"]]
        for one in ("word, polled", "futex", "eventfd", "pipe", "Boost interprocess_semaphore", "Carousel queue"):
            self.assertIn(one, means)
        for h in report["hops"]:
            self.assertTrue(h["verified"], h)
            self.assertEqual(h["round_trips"], 2000)
            self.assertGreaterEqual(h["p95_us"], h["us"])
            if "MPI" not in h["means"]:
                self.assertGreater(h["threads_us"], 0, h)   # its peer of one process
        if len(os.sched_getaffinity(0)) > 1:
            self.assertGreater(report["hop_floor_us"], 0)
        self.assertTrue("MPI_Send (Open MPI)" in means or "Open MPI" in report["missing"]["MPI_Send (Open MPI)"]
                        or "mpirun" in report["missing"]["MPI_Send (Open MPI)"], report["missing"])
        for primitive in ("semaphore", "queue", "pool", "work queue"):
            rows = [p for p in report["primitives"] if p["primitive"] == primitive]
            self.assertEqual({p["number"] for p in rows}, {1, 3})
            self.assertIn("Carousel", {p["by"] for p in rows})
            self.assertTrue(any(p["workers"] == "threads" for p in rows), primitive)   # its best peer of one process
        for p in report["primitives"]:
            self.assertTrue(p["verified"], p)
            self.assertAlmostEqual(p["ns"] * p["operations_s"] / p["number"] / 1e9, 1, delta=0.01)
        self.assertEqual(xml.parse(plot).getroot().tag, "{http://www.w3.org/2000/svg}svg")
        self.assertRegex(report["gpu"]["missing"]["gpu"], "^(no GPU: |built without CUDA)")
        self.assertEqual((report["gpu"]["memory"], report["gpu"]["hops"]), ([], []))
        self.assertIn("not here: gpu: ", done.stdout)
        self.assertEqual(os.listdir(os.path.join(self.runtime, "carousel-spaces")), [], "the bench's space is left")
        self.assertEqual([n for n in os.listdir("/dev/shm") if n.startswith("carousel-bench-")], [])

    def test_one_table_alone_as_json(self):
        done = self.bench("--quick", "--tables", "memory", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((len(report["memory"]), report["hops"], report["primitives"]), (2, [], []))

    def test_without_shared_memory_by_name_what_needs_none_is_measured(self):
        hide = "mount -t tmpfs -o ro none /dev/shm"
        if subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True, check=False).returncode != 0:
            self.skipTest("no right to hide /dev/shm here")
        done = self.bench("--quick", "--tables", "hops", "--json", before=["unshare", "-m", "sh", "-c", hide + ' && exec "$0" "$@"'])
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        means = [h["means"] for h in report["hops"]]
        self.assertIn("futex", means)
        self.assertNotIn("Boost message_queue", means)
        self.assertIn("Boost message_queue", report["missing"])

    def test_errors_name_the_cause(self):
        for words, expected in ((["--tables", "hop"], 'did you mean "hops"'), (["--processes", "0"], "1 to 64"),
                                (["--quik"], 'did you mean "--quick"')):
            done = self.bench(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)
        done = self.bench("--quick", "--tables", "gpu-memory,gpu-hops,gpu-primitives")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("names only GPU tables", done.stderr)
        self.assertEqual(self.bench("--quick", "--json", os.path.join(self.folder, "none", "r.json")).returncode, 75)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
