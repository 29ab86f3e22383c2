"""`carousel run --profile`, with stand-ins for NVIDIA's profilers that record their arguments and start the given program.

Usage: test_profile.py FOLDER_OF_PROGRAMS PIPELINES"""
import os
import signal
import subprocess
import sys
import time
import unittest

from live import CAROUSEL, PIPELINES, SMALL, Live  # reads sys.argv

DEMO = os.path.join(PIPELINES, "demo.toml")
NSYS = """#!/bin/sh
printf '%s\\n' "$@" > "$LOG"
shift
while case $1 in --*) true;; *) false;; esac; do case $1 in --output=*) out=${1#*=};; esac; shift; done
"$@"; code=$?
echo timeline > "$out.nsys-rep"
exit $code
"""
NCU = """#!/bin/sh
printf '%s\\n' "$@" > "$LOG"
while [ "${1#--}" != "$1" ]; do
  case $1 in --force-overwrite) shift;; --export) out=$2; shift 2;; *) shift 2;; esac
done
"$@"; code=$?
echo counters > "$out.ncu-rep"
exit $code
"""


class Profile(Live):
    def setUp(self):
        super().setUp()
        self.log = os.path.join(self.folder, "words")
        tools = os.path.join(self.folder, "tools")
        os.mkdir(tools)
        self.write("tools/nsys", NSYS, 0o755)
        self.write("tools/ncu", NCU, 0o755)
        self.environment.update(LOG=self.log, PATH=tools + ":" + self.environment["PATH"])

    def words(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read().splitlines()

    def test_nsys_runs_the_whole_run_and_its_report_is_named(self):
        done = self.carousel("run", DEMO, "--name", self.name, *SMALL, "--frames", "20", "--profile", "nsys")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = os.path.join(self.folder, self.name + ".nsys-rep")
        self.assertEqual(done.stdout, f"nsys report: {report} (nsys-ui FILE, or {self.folder}/tools/nsys stats FILE)\n")
        self.assertTrue(os.path.isfile(report))
        words = self.words()
        self.assertEqual(words[0], "profile")
        below = words[words.index(CAROUSEL):]
        self.assertEqual(below[1:3], ["run", DEMO])
        self.assertFalse([w for w in below if "profile" in w])
        self.assertIn("frame_timeout_ms=60000", below)
        self.assertIn("20 frames", done.stderr)  # the run's own last line

    def test_ctrl_c_ends_the_run_below_nsys_as_ever_and_the_report_is_whole(self):
        process = subprocess.Popen([CAROUSEL, "run", DEMO, "--name", self.name, *SMALL, "--profile=nsys"], cwd=self.folder, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            output = self.carousel("ps", "-p", self.name, "--json")
            if output.returncode == 0 and self.ps()["pipeline"]["frames"] > 3:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("nsys report: ", out)
        self.assertIn("lost 0, repeated 0, torn 0", err)
        self.assertIn("profiling for 10 s", err)
        self.assertIn("--seconds", self.words())

    def test_ncu_runs_one_stage_only(self):
        done = self.carousel("run", DEMO, "--name", self.name, *SMALL, "--frames", "20", "--profile", "ncu:fragment", "--report", "r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = os.path.join(self.folder, self.name + "-fragment.ncu-rep")
        self.assertIn(f"ncu report: {report} ", done.stdout)
        words = self.words()
        self.assertEqual(os.path.basename(words[-1]), "carousel-fragment")
        self.assertEqual(words[:6], ["--clock-control", "none", "--launch-skip", "300", "--launch-count", "20"])

    def test_what_cannot_be_profiled_is_refused_in_a_sentence_that_helps(self):
        for words, expected in ((("--profile", "perf"), "expected nsys"), (("--profile", "ncu:"), "ncu:STAGE"),
                                (("--profile", "ncu:fragmnt"), "fragment"), (("--profile", "nsys", "-d"), "--detach")):
            done = self.carousel("run", DEMO, "--name", self.name, *SMALL, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(expected, done.stderr)
        self.environment["CAROUSEL_NSYS"] = "/absent/nsys"
        done = self.carousel("run", DEMO, *SMALL, "--profile", "nsys")
        self.assertEqual(done.returncode, 2)
        self.assertIn("CAROUSEL_NSYS=/absent/nsys", done.stderr)
        self.assertFalse(os.path.exists(self.log))

    def test_without_the_profiler_the_message_names_its_package(self):
        self.environment["PATH"] = "/nowhere"
        for tool, package in (("nsys", "nsight-systems"), ("ncu:fragment", "nsight-compute")):
            done = self.carousel("run", DEMO, *SMALL, "--frames", "2", "--profile", tool)
            if done.returncode == 0:
                continue  # this machine has the real one below /opt/nvidia
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"apt-get install {package}", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
