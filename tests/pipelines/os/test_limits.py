"""Runs under limits of the operating system: processes, file sizes, stacks, PID namespaces, control groups.

Usage: test_limits.py PROGRAMS PIPELINES PART
"""
import json
import os
import re
import resource
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from live import CAROUSEL, Live, wait_for  # noqa: E402
from cgroups import Group  # noqa: E402
from processes import skip  # noqa: E402

# A stage that gets one processor computes slowly: no deadline but the one that a test is about.
PATIENT = ("--set", "frame_timeout_ms=60000")


class Limits(Live):
    def run_demo(self, *more, prepare=None, file="demo.toml", seconds=100, **options):
        """The demo in the foreground, until its end; prepare() runs in the child before it becomes `carousel`."""
        path = file if os.path.isabs(file) else os.path.join(sys.argv[2], file)
        words = [CAROUSEL, "run", path, "--name", self.name, "--device", "cpu", "--size", "64x48", *more]
        return subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False, cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, preexec_fn=prepare, **options)

    def group(self, controller):
        group = Group(controller)
        self.addCleanup(group.remove)
        return group

    def log(self):
        log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.addCleanup(log.close)
        return log

    @staticmethod
    def read(log):
        with open(log.name, encoding="utf-8") as f:
            return f.read()

    @staticmethod
    def end(run):
        run.kill()
        run.wait()

    def test_pids(self):
        group = self.group("pids")
        group.set("pids.max", 12)
        done = self.run_demo("--frames", "20", "--out", "", prepare=group.enter)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("Resource temporarily unavailable", done.stderr)
        self.assertIn(f"{group.folder}/pids.max", done.stderr)
        self.assertNotIn("Too many open files", done.stderr)
        self.assertIn("no stage could start within 8 s", done.stderr)

    def test_pids_raised(self):
        """The start waits and continues once the limit is raised."""
        group = self.group("pids")
        group.set("pids.max", 12)
        log = self.log()
        run = subprocess.Popen([CAROUSEL, "run", os.path.join(sys.argv[2], "demo.toml"), "--name", self.name, "--device", "cpu", "--size",
                                "64x48", "--frames", "20", "--out", ""], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                               cwd=self.folder, env=self.environment, preexec_fn=group.enter)
        self.addCleanup(self.end, run)
        wait_for("a start is put off", lambda: "can't be started yet" in self.read(log))
        group.set("pids.max", "max")
        code = run.wait(60)
        text = self.read(log)
        self.assertEqual(code, 0, text)
        self.assertIn("20 frames", text)
        self.assertNotIn("before it delivered a frame", text)  # no attempt was counted

    def test_file_size(self):
        for most in (1024, 65536):  # of the runtime directory's files, of the control block

            def limited():
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            done = self.run_demo("--frames", "4", "--out", "", prepare=limited)
            self.assertEqual(done.returncode, 74, f"{most}: {done.stderr}")  # no signal
            self.assertIn(f"File too large; a file may have {most} bytes (ulimit -f)", done.stderr)
            self.assertNotIn("room", done.stderr)

    def test_recording(self):
        self.up()
        wait_for("frames", lambda: self.frames() > 5)

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        done = self.carousel("record", "fragment", "--latest", "--out", "short.mcap", "-p", self.name, preexec_fn=limited)
        self.assertEqual(done.returncode, 75, done.stderr)  # no signal
        self.assertIn("File too large; a file may have 65536 bytes (ulimit -f)", done.stderr)

    def test_stack(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        done = self.run_demo("--frames", "20", "--out", "", *PATIENT, prepare=limited)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("SIGSEGV", done.stderr)

    def test_stack_refused(self):
        if os.getuid() != 0:
            skip("only root can become a user without rights and keep the programs readable")

        def limited():
            resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))
            os.setgid(65534)
            os.setuid(65534)
        os.chmod(self.folder, 0o777)
        done = self.run_demo("--frames", "20", "--out", "", prepare=limited)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("ulimit -s", done.stderr)
        self.assertIn("64 KiB", done.stderr)

    def test_orphans(self):
        namespace = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode != 0:
            skip("no PID namespace can be made here")
        # Each start of the fragment stage leaves five orphans that end at once.
        file = self.talking_pipeline("for k in 1 2 3 4 5; do (sleep 0.1 & exec true) ; done")
        run = subprocess.Popen([*namespace, CAROUSEL, "run", file, "--name", self.name, "--device", "cpu", "--size", "64x48", "--out", "",
                                "--fps", "30"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               cwd=self.folder, env=self.environment, preexec_fn=os.setsid)
        self.addCleanup(run.stderr.close)
        self.addCleanup(self.end, run)

        def children(pid):
            """(pid, state, command) of each process whose parent is `pid`, as this namespace numbers them."""
            out = []
            for each in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{each}/stat", encoding="ascii", errors="replace") as f:
                        command, rest = f.read().split("(", 1)[1].rsplit(")", 1)
                except OSError:
                    continue
                state, parent = rest.split()[:2]
                if int(parent) == pid:
                    out.append((int(each), state, command))
            return out

        supervisor = wait_for("PID 1 of the namespace", lambda: children(run.pid))[0][0]
        wait_for("orphans of the stage's start", lambda: [c for c in children(supervisor) if c[2] == "sleep"])
        wait_for("all stages", lambda: len([c for c in children(supervisor) if c[2].startswith("carousel-")]) >= 4)
        wait_for("no zombie and no orphan remains", lambda: all(c[1] != "Z" and c[2] != "sleep" for c in children(supervisor)))
        # The exit status of a stage is still the supervisor's: a killed one is replaced, and named by its signal.
        victim = next(c[0] for c in children(supervisor) if c[2] == "carousel-vertex")
        os.kill(victim, 9)
        wait_for("the successor", lambda: [c for c in children(supervisor) if c[2] == "carousel-vertex" and c[0] != victim])
        os.kill(supervisor, 15)
        text = run.communicate(timeout=60)[1]
        self.assertIn("vertex", text)
        self.assertIn("lost 0, repeated 0, torn 0; 1 restarts", text)

    def test_memory(self):
        group = self.group("memory")
        group.set("memory.max" if group.v2 else "memory.limit_in_bytes", 160 << 20)
        # The fragment stage's first process needs more memory than there is; its successor is the stage.
        hog = "if mkdir hog 2>/dev/null; then exec python3 -c 'x = bytearray(1 << 30)'; fi"
        done = self.run_demo("--frames", "20", "--out", "", *PATIENT, file=self.talking_pipeline(hog), prepare=group.enter)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the kernel's out-of-memory killer has ended it", done.stderr)
        self.assertIn(group.folder, done.stderr)
        self.assertIn("20 frames", done.stderr)

    def test_oom_score(self):
        self.up()

        def score(pid):
            with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as f:
                return int(f.read())
        answer = self.ps()
        supervisor = score(answer["pipeline"]["pid"])
        for stage in answer["stages"]:
            self.assertEqual(score(stage["pid"]), min(supervisor + 100, 1000), stage["name"])

    def test_quota(self):
        group = self.group("cpu")
        # 1 ms of processor time per half second
        file, full, little = ("cpu.max", "max 500000", "1000 500000") if group.v2 else ("cpu.cfs_quota_us", "-1", "1000")
        if not group.v2:
            group.set("cpu.cfs_period_us", 500000)
        group.set(file, full)
        log = self.log()
        run = subprocess.Popen([CAROUSEL, "run", os.path.join(sys.argv[2], "demo.toml"), "--name", self.name, "--device", "cpu", "--size",
                                "320x180", "--out", "", "--set", "frame_timeout_ms=1000"], stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment, preexec_fn=group.enter)
        self.addCleanup(self.end, run)
        self.addCleanup(group.set, file, full)
        wait_for("frames", lambda: self.frames() > 5)
        group.set(file, little)

        def log_names_it():
            text = self.read(log)
            return text if "the CPU quota" in text or "replacing it" in text else None
        text = wait_for("the quota is named, or a stage is replaced", log_names_it, 60)
        time.sleep(2)  # not to wait for anything: longer than the deadline of a frame that began under the quota
        group.set(file, full)
        self.assertIn(f"the CPU quota {group.folder}/{file}", text)
        seen = wait_for("an answer", self.frames)
        wait_for("frames without a quota", lambda: self.frames() > seen + 5)
        run.terminate()
        self.assertEqual(run.wait(60), 0)
        text = self.read(log)
        self.assertNotIn("replacing it", text)
        self.assertIn("; 0 restarts", text)

    def test_frozen(self):
        group = self.group("freezer")
        file, frozen, thawed = ("cgroup.freeze", "1", "0") if group.v2 else ("freezer.state", "FROZEN", "THAWED")
        self.up()
        self.addCleanup(group.set, file, thawed)
        wait_for("frames", lambda: self.frames() > 5)
        victim = self.stage("vertex")["pid"]
        group.add(victim)
        group.set(file, frozen)
        wait_for("the successor", lambda: self.stage("vertex")["pid"] not in (victim, None))
        log = self.carousel("logs", "-p", self.name).stdout
        self.assertIn(f"vertex (pid {victim}) was stopped by a signal", log)
        seen = self.frames()
        wait_for("frames", lambda: self.frames() > seen + 5)

    def test_doctor(self):
        memory, cpu = self.group("memory"), self.group("cpu")
        memory.set("memory.max" if memory.v2 else "memory.limit_in_bytes", 200 << 20)
        cpu.set(*(("cpu.max", "30000 100000") if cpu.v2 else ("cpu.cfs_quota_us", "30000")))

        def enter():
            memory.enter()
            cpu.enter()
        done = self.carousel("doctor", preexec_fn=enter)
        self.assertIn(f"/{os.path.basename(memory.folder)}/memory", done.stdout)
        self.assertIn("allows 200.0 MiB", done.stdout)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertIn("1 of ", done.stdout)
            self.assertIn("allows 0.30)", done.stdout)

    def test_doctor_cpuset(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            skip("this process may use one processor only")
        group = self.group("cpuset")
        if not group.v2:
            with open(os.path.join(os.path.dirname(group.folder), "cpuset.mems"), encoding="ascii") as mems:
                group.set("cpuset.mems", mems.read().strip())
        group.set("cpuset.cpus", cpus[0])
        self.assertRegex(self.carousel("doctor", preexec_fn=group.enter).stdout, f"1 of [0-9]+ .{group.folder}/cpuset[a-z_.]+ allows {cpus[0]}. usable")
        done = self.carousel("doctor", preexec_fn=lambda: os.sched_setaffinity(0, cpus[:1]))
        self.assertRegex(done.stdout, r"1 of [0-9]+ \(the affinity mask of this process allows no more\) usable")

    def test_plan(self):
        group = self.group("memory")
        group.set("memory.max" if group.v2 else "memory.limit_in_bytes", 48 << 20)
        done = self.run_demo("--dry-run", "--size", "1920x1080", prepare=group.enter)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        free = re.search(r"but ([0-9.]+) MiB are free there", done.stderr)
        self.assertTrue(free, done.stderr)
        self.assertLess(float(free[1]), 48)
        self.assertRegex(done.stderr, f"on the host, of which {group.folder}/memory[a-z_.]+ allows 48.0 MiB")

    def frames(self):
        done = self.carousel("ps", "-p", self.name, "--json")
        return 0 if done.returncode != 0 else max(s.get("frames") or 0 for s in json.loads(done.stdout)["stages"])


if __name__ == "__main__":
    part = sys.argv.pop(3)
    unittest.main(argv=[sys.argv[0], "-v", f"Limits.test_{part}"])
