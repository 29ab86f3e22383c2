"""`carousel lab` as a user starts it. Usage: test_lab.py FOLDER_OF_PROGRAMS."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

PROGRAMS = os.path.abspath(sys.argv[1])
WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1"}


class Lab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carousel-lab-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.runtime = os.path.join(self.folder, "runtime")
        os.mkdir(self.runtime, 0o700)

    def lab(self, *words, before=(), programs=PROGRAMS, **environment):
        return subprocess.run([*before, os.path.join(programs, "carousel"), "lab", *words], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=290,
                              env={**os.environ, **WITHOUT_GPU, "XDG_RUNTIME_DIR": self.runtime, **environment})

    def test_every_lesson_runs_on_the_cpu_within_five_minutes_and_its_page_is_whole(self):
        page = os.path.join(self.folder, "lab.html")
        begin = time.monotonic()
        done = self.lab("--all", "--no-prediction", "--report", page)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertLess(time.monotonic() - begin, 300)
        names = re.findall(r"^ *(\d+)  (\w+)", self.lab().stdout, re.M)
        self.assertEqual([int(number) for number, _ in names], list(range(1, 16)))
        for number, name in names:
            self.assertRegex(done.stdout, rf"(?m)^lesson {number}: explained in ")
        self.assertIn("the kill: ", done.stdout)
        self.assertRegex(done.stdout, r"not here: (no GPU: |built without CUDA: )")
        with open(page, encoding="utf-8") as f:
            html = f.read()
        self.assertIn('name="viewport"', html)   # a narrow screen has it as wide as it is
        for number, _ in names:
            self.assertIn(f'<h2 id="lesson{number}">', html)
        drawings = re.findall(r"<svg.*?</svg>", html, re.S)
        self.assertGreaterEqual(len(drawings), len(names) - 1)
        for drawing in drawings:
            xml.fromstring(drawing)
        self.assertNotIn("UNEXPLAINED", done.stdout)
        self.assertEqual(os.listdir(os.path.join(self.runtime, "carousel-spaces")), [], "a lesson's space is left")

    def test_ranks_are_forked_where_there_is_no_mpirun(self):
        done = self.lab("ranks", "--no-prediction", PATH="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Open MPI is not installed here", done.stdout)
        self.assertIn("They are 4 forked processes", done.stdout)

    def test_a_user_who_can_be_no_other_one_learns_what_he_can(self):
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if os.geteuid() == 0:
            os.chown(self.folder, 65534, 65534)
            os.chown(self.runtime, 65534, 65534)
        if subprocess.run([*user, os.path.join(PROGRAMS, "carousel"), "--version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("another user can't run this build")
        done = self.lab("tenants", "--no-prediction", before=user)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("not here: this process may not become another user", done.stdout)
        self.assertIn("Not if they have the same user", done.stdout)

    def test_one_lesson_without_a_terminal_skips_the_prediction_and_reports_it(self):
        done = self.lab("2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no terminal: skipping the prediction", done.stderr)
        self.assertIn("The answer: b)", done.stdout)
        self.assertNotIn("Your prediction", done.stdout)

    def test_a_name_misspelt_and_words_that_exclude_each_other(self):
        for words, text in ((["cohernce"], 'did you mean "coherence"?'), (["17"], "`carousel lab` lists all lessons"),
                            (["2", "--all"], "--all runs every lesson"), (["--report", "x.html"], "name a lesson or use --all"),
                            (["2", "--reprot", "x"], 'did you mean "--report"')):
            done = self.lab(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)

    def test_a_report_that_cannot_be_written_is_known_before_anything_runs(self):
        done = self.lab("--all", "--no-prediction", "--report", os.path.join(self.folder, "none", "lab.html"))
        self.assertEqual(done.returncode, 75)
        self.assertIn("lab.html", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_program_that_is_not_there_fails_its_lesson_and_one_for_the_gpu_does_not(self):
        lonely = os.path.join(self.folder, "bin")
        os.mkdir(lonely)
        for name in ("carousel", "carousel-lab-events"):
            shutil.copy(os.path.join(PROGRAMS, name), lonely)
        done = self.lab("events", "--no-prediction", programs=lonely)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        os.remove(os.path.join(lonely, "carousel-lab-events"))
        done = self.lab("events", "--no-prediction", programs=lonely)
        self.assertEqual(done.returncode, 1)
        self.assertIn("carousel-lab-events", done.stdout)
        self.assertIn("1 of 1 lessons failed: 2 (events)", done.stderr)

    def test_without_shared_memory_by_name_the_rest_of_a_lesson_runs(self):
        hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$0" "$@"']
        if subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro none /dev/shm"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("no right to hide /dev/shm here")
        for name in ("handles", "descriptors", "tenants", "order"):
            done = self.lab(name, "--no-prediction", before=hidden)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("not here: no POSIX shared memory here: ", done.stdout)
        self.assertIn("can't be checked here", done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
