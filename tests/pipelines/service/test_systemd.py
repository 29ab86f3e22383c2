"""The unit template under systemd: a user manager of its own in a mount namespace and control groups of its own. Needs root.
Usage: test_systemd.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import end_process, is_alive, skip, wait_for  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
OPTIONS = "--device cpu --size 96x64 --fps 30 --set geometry.triangles=500"
# The manager refuses to start where /run/systemd/system is missing.
ALONE = "mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec systemd --user --unit=basic.target"


def control_groups():
    """Folders of the hierarchies in which systemd keeps its units."""
    roots = [r for r in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd") if os.path.exists(r + "/cgroup.procs")]
    return [os.path.join(r, f"carousel-test-{os.getpid()}") for r in roots]


class Systemd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-systemd-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.runtime = os.path.join(self.folder, "runtime")
        self.config = os.path.join(self.folder, "config")
        os.makedirs(self.config + "/systemd/user/carousel@.service.d")
        os.makedirs(self.config + "/carousel")
        os.mkdir(self.runtime, 0o700)
        with open(os.path.join(PIPELINES, "deploy/carousel@.service.in"), encoding="utf-8") as f:
            self.write("systemd/user/carousel@.service", f.read().replace("@bin@", PROGRAMS))
        self.write("systemd/user/carousel@.service.d/test.conf", "[Service]\nWatchdogSec=6s\nTimeoutAbortSec=1s\n")
        shutil.copy(os.path.join(PIPELINES, "demo.toml"), self.config + "/carousel/demo.toml")
        self.write("carousel/demo.env", f"CAROUSEL_RUN_OPTIONS={OPTIONS}\n")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime, "XDG_CONFIG_HOME": self.config, "HOME": self.folder}
        for name in ("NOTIFY_SOCKET", "DBUS_SESSION_BUS_ADDRESS"):
            self.environment.pop(name, None)
        self.begin_manager()

    def write(self, name, text):
        with open(os.path.join(self.config, name), "w", encoding="utf-8") as f:
            f.write(text)

    def begin_manager(self):
        groups = control_groups()
        for group in groups:
            os.mkdir(group)
            self.addCleanup(self.remove_group, group)

        def enter():
            for group in groups:
                with open(group + "/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(str(os.getpid()))
        log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")
        self.addCleanup(log.close)
        self.manager = subprocess.Popen(["unshare", "-m", "sh", "-c", ALONE], env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=log, preexec_fn=enter)
        self.addCleanup(end_process, self.manager)
        wait_for("the manager", lambda: self.manager.poll() is not None or self.systemctl("status").returncode == 0)
        if self.manager.poll() is not None:
            self.skipTest("systemd's user manager does not start here")

    @staticmethod
    def remove_group(group):
        for folder, _, _ in os.walk(group, topdown=False):
            def members(folder=folder):
                with open(folder + "/cgroup.procs", encoding="ascii") as f:
                    return [int(pid) for pid in f.read().split()]
            for pid in members():
                os.kill(pid, signal.SIGKILL)
            wait_for("an empty group", lambda members=members: not members())
            os.rmdir(folder)

    def systemctl(self, *words):
        return subprocess.run(["systemctl", "--user", "--no-pager", *words], env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def show(self, *names):
        text = self.systemctl("show", "carousel@demo", *(f"-p{n}" for n in names)).stdout
        return tuple(dict(line.split("=", 1) for line in text.splitlines())[n] for n in names)

    def main_pid(self):
        return int(self.show("MainPID")[0])

    def carousel(self, *words):
        done = subprocess.run([os.path.join(PROGRAMS, "carousel"), *words], capture_output=True, text=True, check=False, timeout=120,
                              env={**self.environment, "XDG_RUNTIME_DIR": self.runtime + "/carousel"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def stages(self):
        return {s["name"]: s["pid"] for s in json.loads(self.carousel("ps", "-p", "demo", "--json"))["stages"]}

    def adopted_after(self, first):
        second = wait_for("the next supervisor", lambda: self.main_pid() not in (0, first) and self.show("ActiveState") == ("active",) and self.main_pid())
        wait_for("its state", lambda: re.fullmatch(r"running, \d+\.\d frames/s", self.show("StatusText")[0]))
        return second

    def test_a_killed_and_a_hanging_supervisor_are_replaced_while_the_stages_continue(self):
        begun = self.systemctl("start", "carousel@demo")
        self.assertEqual(begun.returncode, 0, begun.stderr + self.systemctl("status", "carousel@demo").stdout)
        stages, first = self.stages(), self.main_pid()   # ready: `start` has waited
        self.assertTrue(all(map(is_alive, stages.values())))
        wait_for("the rate", lambda: re.fullmatch(r"running, [1-9]\d*\.\d frames/s", self.show("StatusText")[0]))
        os.kill(first, signal.SIGKILL)
        second = self.adopted_after(first)
        self.assertEqual((self.stages(), self.show("NRestarts")), (stages, ("1",)))
        os.kill(second, signal.SIGSTOP)
        third = self.adopted_after(second)
        self.assertEqual((self.stages(), self.show("NRestarts")), (stages, ("2",)))
        self.assertEqual(self.systemctl("stop", "carousel@demo").returncode, 0)
        self.assertEqual(self.show("ActiveState", "Result"), ("inactive", "success"))
        self.assertFalse(any(map(is_alive, (third, *stages.values()))))

    def test_a_changed_file_is_reloaded_with_one_restart_and_a_refused_file_changes_nothing(self):
        self.assertEqual(self.systemctl("start", "carousel@demo").returncode, 0)
        before, main = self.stages(), self.main_pid()
        with open(self.config + "/carousel/demo.toml", encoding="utf-8") as f:
            text = f.read()
        self.write("carousel/demo.toml", text.replace("keep = 100", "keep = 7"))
        reloaded = self.systemctl("reload", "carousel@demo")
        self.assertEqual(reloaded.returncode, 0, reloaded.stderr + self.systemctl("status", "carousel@demo").stdout)
        after = self.stages()
        self.assertEqual({n for n in after if after[n] != before[n]}, {"display"})
        self.write("carousel/demo.toml", text.replace("max_attempts = 3", "max_attempts = 4"))
        self.assertNotEqual(self.systemctl("reload", "carousel@demo").returncode, 0)
        self.assertEqual((self.stages(), self.main_pid(), self.show("ActiveState")), (after, main, ("active",)))
        self.assertEqual(self.systemctl("stop", "carousel@demo").returncode, 0)
        self.assertEqual(self.show("ActiveState", "Result"), ("inactive", "success"))

    def test_an_upgrade_keeps_the_main_process_and_the_unit_active(self):
        self.assertEqual(self.systemctl("start", "carousel@demo").returncode, 0)
        before, main = self.stages(), self.main_pid()
        for words in ((), ("--drain",)):
            self.carousel("upgrade", "-p", "demo", *words)
            wait_for("an active unit", lambda: self.show("ActiveState", "MainPID", "NRestarts") == ("active", str(main), "0"))
            after = self.stages()
            self.assertFalse(set(after.values()) & set(before.values()))
            before = after
        os.kill(main, signal.SIGKILL)
        self.adopted_after(main)
        self.assertEqual(self.stages(), after)
        self.assertEqual(self.systemctl("stop", "carousel@demo").returncode, 0)
        self.assertEqual(self.show("ActiveState", "Result"), ("inactive", "success"))

    def test_an_invalid_file_is_not_started_again(self):
        self.write("carousel/demo.toml", "[pipeline]\nnope = 1\n")
        self.assertNotEqual(self.systemctl("start", "carousel@demo").returncode, 0)
        self.assertEqual(self.show("ActiveState", "Result", "ExecMainStatus", "NRestarts"), ("failed", "exit-code", "2", "0"))


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("control groups of its own need root")
    if not all(map(shutil.which, ("systemd", "systemctl", "unshare"))):
        skip("systemd is not installed")
    result = unittest.main(argv=[sys.argv[0], "-v"], exit=False).result
    if result.skipped:
        skip(result.skipped[0][1])
    sys.exit(not result.wasSuccessful())
