"""Runs of containers: pid, mount and time namespaces side by side, with a shared /dev/shm or a shared runtime directory, and what
`clean`, `ps`, `down` and a start do to a run of another one. Usage: test_containers.py PROGRAMS PIPELINES [TEST...]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import SKIPPED, descendants_of, is_alive, wait_for  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CAROUSEL = os.path.join(PROGRAMS, "carousel")
SMALL = ("--device", "cpu", "--size", "96x64", "--out", "", "--set", "geometry.triangles=500", "--no-color")
# Pid and mount namespaces of their own, where this user is not root also a user namespace.
UNSHARE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
LATER = ["--time", "--monotonic", "1000", "--boottime", "1000"]   # a clock 1000 s ahead: every heartbeat is old there
OWN_SHM = ["sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]
BELOW_INIT = ["sh", "-c", '"$@" & while :; do wait; sleep 0.1; done', "sh"]   # the program is not the namespace's init


def starts(*words):
    return shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().split(b"\0")[0].decode()
    except OSError:
        return ""


class Containers(unittest.TestCase):
    def setUp(self):
        if not starts(*UNSHARE):
            self.skipTest("no pid and mount namespace can be made here (unshare)")
        self.folder = tempfile.mkdtemp(prefix="carousel-containers-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.name = f"contained-{os.getpid()}"
        for each in ("shared", "other"):
            os.mkdir(os.path.join(self.folder, each), 0o700)

    def environment(self, runtime):
        return {**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, runtime), "PATH": PROGRAMS + ":" + os.environ["PATH"]}

    def run_words(self, *more):
        return [CAROUSEL, "run", os.path.join(PIPELINES, "demo.toml"), "--name", self.name, *SMALL, *more]

    def start(self, around, words, runtime="shared"):
        log = open(os.path.join(self.folder, "log"), "a", encoding="utf-8")
        self.addCleanup(log.close)
        process = subprocess.Popen([*UNSHARE, *around, *words], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=self.environment(runtime), cwd=self.folder)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as f:
            return f.read()[-3000:]

    def carousel(self, *words, runtime="shared", around=()):
        """In a separate container."""
        return subprocess.run([*UNSHARE, *around, CAROUSEL, *words], capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL, env=self.environment(runtime), cwd=self.folder)

    def at(self, *names):
        return os.path.join(self.folder, "shared", "carousel", self.name, *names)

    def run_id(self):
        with open(self.at("run.json"), encoding="utf-8") as f:
            return json.load(f)["run_id"]

    def block(self, run_id=None):
        return "/dev/shm/carousel-" + (run_id or self.run_id())

    def wait_running(self, container):
        """All stages have committed a frame, as the sink's ledger shows; their pids here, the supervisor's first."""
        def running():
            self.assertIsNone(container.poll(), self.log())
            path = self.at("ledger-display.bin")
            return os.path.exists(path) and os.path.getsize(path) > 0
        wait_for("a frame", running, 60)
        pids = descendants_of(container.pid)
        supervisor = [pid for pid in pids if command_of(pid) == CAROUSEL]
        stages = [pid for pid in pids if "carousel-" in os.path.basename(command_of(pid))]
        self.assertEqual((len(supervisor), len(stages)), (1, 4), [command_of(pid) for pid in pids])
        return supervisor + stages

    def make_old(self, *paths):
        """As if nothing had been written for longer than a run takes to begin."""
        for path in paths:
            os.utime(path, (1_000_000_000, 1_000_000_000), follow_symlinks=False)

    def stop(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            wait_for("a stopped process", lambda pid=pid: self.state_of(pid) == "T")

    @staticmethod
    def state_of(pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def kill_container(self, container):
        pids = descendants_of(container.pid)
        container.kill()
        container.wait()
        wait_for("the container's end", lambda: not any(is_alive(pid) for pid in pids))

    def check_not_cleaned(self, block, **where):
        """Other runs of this machine may have left something."""
        cleaned = self.carousel("clean", **where)
        self.assertEqual(cleaned.returncode, 0, cleaned.stdout + cleaned.stderr)
        self.assertNotIn(block, cleaned.stdout)
        self.assertNotIn(self.at(), cleaned.stdout)
        self.assertTrue(os.path.exists(block) and os.path.exists(self.at("run.json")), cleaned.stdout)

    def test_a_frozen_run_of_another_container_survives_a_clean_and_a_start(self):
        if not starts(*UNSHARE, *LATER):
            self.skipTest("no time namespace can be made here (unshare --time)")
        run = self.start([], self.run_words("--frames", "200", "--fps", "100"))
        pids, block = self.wait_running(run), self.block()
        self.stop(pids)
        self.make_old(block)
        begun = self.carousel(*self.run_words("--frames", "2")[1:], runtime="other", around=LATER)
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.assertTrue(os.path.exists(block), "a start has removed the frozen run's control block")
        self.check_not_cleaned(block, runtime="other", around=LATER)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        os.kill(pids[2], signal.SIGKILL)   # a restarted stage must find the block
        self.assertEqual(run.wait(60), 0, self.log())
        self.assertRegex(self.log(), "200 frames in .*1 restarts")
        self.assertFalse(os.path.exists(block))

    def test_runs_of_dead_containers_are_found_dead_and_cleaned(self):
        run = self.start([], self.run_words())
        self.wait_running(run)
        block = self.block()
        self.kill_container(run)
        self.make_old(block)
        listed = self.carousel("ps")
        self.assertNotEqual(listed.returncode, 0, listed.stdout)
        self.assertIn("no pipeline is running", listed.stderr)
        self.assertNotIn("has ended", self.carousel("down", "-p", self.name).stdout)
        cleaned = self.carousel("clean")
        self.assertEqual(cleaned.returncode, 0, cleaned.stdout + cleaned.stderr)
        self.assertIn(f"removed runtime directory {self.at()}", cleaned.stdout)
        self.assertIn(f"removed shared memory {block}", cleaned.stdout)
        self.assertEqual((os.path.exists(self.at()), os.path.exists(block)), (False, False))

    def test_a_run_of_a_dead_container_with_a_dev_shm_of_its_own_is_cleaned(self):
        run = self.start(OWN_SHM, self.run_words())
        self.wait_running(run)
        self.kill_container(run)
        self.assertIn(f"removed runtime directory {self.at()}", self.carousel("clean", around=OWN_SHM).stdout)
        self.assertFalse(os.path.exists(self.at()))

    def test_a_start_takes_the_name_of_a_run_of_a_dead_container(self):
        run = self.start([], self.run_words())
        self.wait_running(run)
        block = self.block()
        self.kill_container(run)
        begun = self.carousel(*self.run_words("--frames", "2")[1:])
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.assertEqual((os.path.exists(self.at()), os.path.exists(block)), (False, False))

    def test_a_live_run_of_another_container_is_listed_and_kept(self):
        run = self.start([], self.run_words("--fps", "100"))
        pids = self.wait_running(run)
        self.stop(pids[:1])
        self.make_old(self.block())
        self.check_not_cleaned(self.block())
        second = self.carousel(*self.run_words("--frames", "2")[1:])
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("is already running", second.stderr)
        os.kill(pids[0], signal.SIGCONT)
        self.assertEqual(self.carousel("ps", "-p", self.name).returncode, 0)
        down = self.carousel("down", "-p", self.name)
        self.assertNotEqual(down.returncode, 0, down.stdout)
        self.assertIn("container", down.stderr)
        self.assertIsNone(run.poll())
        # From a namespace above the container's the supervisor can be signalled.
        ended = subprocess.run([CAROUSEL, "down", "-p", self.name], capture_output=True, text=True, timeout=60, check=False,
                               env=self.environment("shared"))
        self.assertEqual((ended.returncode, ended.stdout), (0, f'pipeline "{self.name}" has ended\n'), ended.stderr)
        self.assertEqual(run.wait(60), 0, self.log())

    def test_a_read_only_mount_of_another_container_serves_observers(self):
        """Each namespace of its own, its own /dev/shm, and the run's directory without the right to write."""
        run = self.start([], self.run_words("--fps", "100"))
        self.wait_running(run)
        apart = ["unshare", "--map-root-user", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                 f'mount -t tmpfs tmpfs /dev/shm && mount --bind {self.folder} {self.folder} && mount -o remount,bind,ro {self.folder} && exec "$@"',
                 "sh"]

        def observe(*words):
            done = subprocess.run([*apart, *words], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                                  env=self.environment("shared"), cwd="/")
            return done.returncode, done.stdout + done.stderr
        self.assertNotEqual(observe("touch", self.at("written"))[0], 0)
        for words, shown in ((("ps",), "fragment"), (("logs", "fragment"), ""), (("set",), "ambient")):
            code, text = observe(CAROUSEL, *words)
            self.assertEqual((code, shown in text), (0, True), f"{words}: {text}")
        latest = (os.path.join(PROGRAMS, "carousel-test-port-io"), "latest", self.at(), "fragment")
        for words in ((CAROUSEL, "top", "--once"), latest):
            code, text = observe(*words)
            self.assertEqual((code, "run this command there, or share /dev/shm with it" in text), (74, True), f"{words}: {text}")
        # With the run's /dev/shm, everything that observes.
        apart[-2] = f'mount --bind {self.folder} {self.folder} && mount -o remount,bind,ro {self.folder} && exec "$@"'
        code, text = observe(CAROUSEL, "top", "--once")
        self.assertEqual((code, "RING" in text), (0, True), text)
        self.assertIn('no plane "value" in carousel.image.rgba8', observe(*latest)[1])   # it has received a frame's description
        if not os.path.exists(os.path.join(PROGRAMS, "carousel-web")):
            return   # a build without extras
        code, text = observe("sh", "-c", f"ip link set lo up; {CAROUSEL} view --http 127.0.0.1:8099 & sleep 2; "
                             "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8099/healthz').read())\"; kill $!")
        self.assertIn("b'ok", text)

    def test_another_user_gets_the_reason_in_one_sentence(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        run = self.start([], self.run_words("--fps", "100"))
        self.wait_running(run)
        os.chmod(self.folder, 0o755)
        other = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"]
        for words in ([CAROUSEL, "ps"], [CAROUSEL, "top", "--once"]):
            done = subprocess.run([*other, *words], capture_output=True, text=True, timeout=60, check=False, env=self.environment("shared"), cwd="/")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("it belongs to user 0, but this process runs as 12345, and a run is accessible to its own user only", done.stderr)
        done = subprocess.run([*other, os.path.join(PROGRAMS, "carousel-test-port-io"), "latest", self.at(), "fragment"], capture_output=True,
                              text=True, timeout=60, check=False, env=self.environment("shared"), cwd="/")
        self.assertIn("Permission denied: a run is accessible to its own user only", done.stdout)

    def check_stages_without_a_supervisor(self, around):
        run = self.start([*around, *BELOW_INIT], ["env", "CAROUSEL_SUPERVISOR_GRACE_S=1", *self.run_words("--fps", "100")])
        pids = self.wait_running(run)
        self.stop(pids[1:])
        os.kill(pids[0], signal.SIGKILL)
        wait_for("the supervisor's end", lambda: not is_alive(pids[0]))
        cleaned = self.carousel("clean", around=around)
        self.assertIn(f"kept runtime directory {self.at()}", cleaned.stdout)
        second = self.carousel(*self.run_words("--frames", "2")[1:], around=around)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("this process can neither adopt nor end them", second.stderr)
        self.assertTrue(os.path.exists(self.at("run.json")))
        for pid in pids[1:]:
            os.kill(pid, signal.SIGCONT)
        wait_for("the end of the stages", lambda: not any(is_alive(pid) for pid in pids[1:]))
        self.assertFalse(os.path.exists(self.at()), os.listdir(self.at()) if os.path.exists(self.at()) else "")

    def test_stopped_stages_of_another_container_keep_their_run_without_a_supervisor(self):
        self.check_stages_without_a_supervisor([])

    def test_stopped_stages_keep_their_run_also_with_a_dev_shm_of_their_own(self):
        self.check_stages_without_a_supervisor(OWN_SHM)

    def test_a_run_is_not_taken_for_dead_by_a_process_of_another_time_namespace(self):
        if not starts(*UNSHARE, *LATER):
            self.skipTest("no time namespace can be made here (unshare --time)")
        words = self.run_words("--fps", "100")
        log = open(os.path.join(self.folder, "log"), "a", encoding="utf-8")
        self.addCleanup(log.close)
        run = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.environment("shared"),
                               cwd=self.folder)
        self.addCleanup(lambda: (run.kill(), run.wait()))
        wait_for("a frame", lambda: os.path.exists(self.at("ledger-display.bin")) and os.path.getsize(self.at("ledger-display.bin")) > 0, 60)
        self.make_old(self.block())
        later = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--fork", *LATER, CAROUSEL]
        for command in (["clean"], ["ps", "-p", self.name]):
            done = subprocess.run([*later, *command], capture_output=True, text=True, timeout=60, check=False,
                                  env=self.environment("shared"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn(self.at(), done.stdout)
        self.assertTrue(os.path.exists(self.block()))
        self.assertTrue(os.path.exists(self.at("run.json")))
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 0, self.log())


if __name__ == "__main__":
    result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if len(result.skipped) == result.testsRun else 0)
