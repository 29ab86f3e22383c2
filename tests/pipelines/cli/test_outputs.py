"""Output files that a user names, for any existing file of that name. Usage: test_outputs.py
FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import stat
import threading

from live import HAS_EXTRAS, PIPELINES, PROGRAMS, SMALL, Live, main, os, subprocess

QUICK = (*[w for w in SMALL if w not in ("--fps", "30")], "--frames", "3")
WITHOUT_OUT = [w for k, w in enumerate(QUICK) if "--out" not in (w, QUICK[k - 1])]


class Reader(threading.Thread):
    """Reads a FIFO to its end."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.text = path, None
        self.start()

    def run(self):
        with open(self.path, "rb") as f:
            self.text = f.read()

    def all_of_it(self, test):
        self.join(30)
        test.assertIsNotNone(self.text, f"no process has written into {self.path}")
        return self.text


class Outputs(Live):
    def run_demo(self, *more, **options):
        return self.carousel("run", os.path.join(PIPELINES, "demo.toml"), "--name", self.name, *more, **options)

    def path(self, name):
        return os.path.join(self.folder, name)

    def device(self, name, major, minor):
        """A character device of this test's own: the machine's must survive a fault."""
        try:
            os.mknod(self.path(name), stat.S_IFCHR | 0o666, os.makedev(major, minor))
            os.close(os.open(self.path(name), os.O_WRONLY))
        except OSError as e:
            self.skipTest(f"no device can be made here: {e}")
        return self.path(name)

    def ledgers(self):
        return [n for n in os.listdir(self.folder) if "ledger" in n]

    def test_a_report_into_a_fifo_is_read_by_its_reader_and_the_fifo_stays(self):
        os.mkfifo(self.path("r.json"))
        reader = Reader(self.path("r.json"))
        done = self.run_demo(*QUICK, "--report", "r.json")
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.path("r.json")).st_mode), "the FIFO was replaced")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(reader.all_of_it(self))
        self.assertEqual(report["frames"], 3)
        self.assertIsNone(report["sinks"][0]["ledger"])
        self.assertEqual(self.ledgers(), [])

    def test_a_report_into_a_full_device_is_an_output_error_and_the_device_stays(self):
        full = self.device("full", 1, 7)
        done = self.run_demo(*QUICK, "--report", "full")
        self.assertTrue(stat.S_ISCHR(os.lstat(full).st_mode), "the device was replaced")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("the report can't be written to full: No space left on device", done.stderr)
        self.assertEqual(self.ledgers(), [])

    def test_a_report_into_standard_output_follows_what_is_there(self):
        os.symlink("/proc/self/fd/1", self.path("stdout"))  # as /dev/stdout, which a fault would replace
        with open(self.path("all"), "wb") as out:
            out.write(b"before\n")
            out.flush()
            done = self.run_demo(*QUICK, "--report", "stdout", capture_output=False, stdout=out, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.islink(self.path("stdout")), "the link was replaced")
        with open(self.path("all"), encoding="utf-8") as f:
            text = f.read()
        self.assertTrue(text.startswith("before\n{"), text[:80])
        self.assertEqual(json.loads(text[len("before\n"):])["frames"], 3)

    def test_links_stay_and_their_targets_are_written(self):
        os.mkdir(self.path("there"))
        for link, target in (("r.json", "there/report.json"), ("p_0.png", "there/first.png"), ("p_1.png", "there/second.png")):
            os.symlink(target, self.path(link))
        self.write("there/first.png", "old")
        done = self.run_demo(*WITHOUT_OUT, "--report", "r.json", "--out", "p_%d.png")
        self.assertEqual(done.returncode, 0, done.stderr)
        for link in ("r.json", "p_0.png", "p_1.png"):
            self.assertTrue(os.path.islink(self.path(link)), f"{link} was replaced")
        for picture in ("there/first.png", "there/second.png", "p_2.png"):
            with open(self.path(picture), "rb") as f:
                self.assertEqual(f.read(4), b"\x89PNG", picture)
        with open(self.path("there/report.json"), encoding="utf-8") as f:
            ledger = json.load(f)["sinks"][0]["ledger"]
        self.assertEqual(ledger, "there/report-ledger-display.bin")
        self.assertTrue(os.path.exists(self.path(ledger)))

    def test_a_percent_sign_in_the_working_directory_stands_for_itself(self):
        for name in ("job%2Fbranch", "100%%", "at_%d"):
            here = os.path.join(self.folder, name)
            os.mkdir(here)
            for out, wanted in (("p_%d.png", "p_0.png"), (None, "runs")):
                done = self.run_demo(*WITHOUT_OUT, *(["--out", out] if out else []), cwd=here)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(wanted, os.listdir(here))
            run, = os.listdir(os.path.join(here, "runs"))
            self.assertIn("frame_00000.png", os.listdir(os.path.join(here, "runs", run)))
            self.assertIn(f"pictures: {here}/runs/{run}\n", done.stderr)
        self.assertEqual(sorted(n for n in os.listdir(self.folder) if not n.startswith("carousel")), ["100%%", "at_%d", "job%2Fbranch"])

    def test_a_film_lies_in_a_working_directory_with_a_percent_sign(self):
        if not os.path.exists(os.path.join(PROGRAMS, "libcarousel-film.so")):
            self.skipTest("this build can't write films")
        here = os.path.join(self.folder, "100%%")
        os.mkdir(here)
        done = self.run_demo(*WITHOUT_OUT, "--out", "film.mp4", cwd=here)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(here), ["film.mp4"])
        self.assertIn(f"pictures: {here}/film.mp4\n", done.stderr)

    def test_results_of_a_benchmark_go_into_what_is_there(self):
        if not HAS_EXTRAS:
            self.skipTest("this build has no benchmarks")
        os.mkfifo(self.path("b.json"))
        os.symlink("there.svg", self.path("b.svg"))
        reader = Reader(self.path("b.json"))
        done = self.carousel("bench", "raster", "--device", "cpu", "--size", "64x64", "--triangles", "100", "--frames", "2",
                             "--json", "b.json", "--plot", "b.svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("results", json.loads(reader.all_of_it(self)))
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.path("b.json")).st_mode))
        self.assertTrue(os.path.islink(self.path("b.svg")))
        with open(self.path("there.svg"), encoding="utf-8") as f:
            self.assertIn("<svg", f.read())


if __name__ == "__main__":
    main()
