"""One pipeline file over several hosts, on one machine: each host has its own runtime directory, on loopback or in a network namespace."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import port_block  # noqa: E402
from link_pair import lose_run, may_be_killed, remove_memory, run_id_in  # noqa: E402
from processes import end_process, wait_for  # noqa: E402

SOURCE = '[[stage]]\nname = "source"\nrun = "carousel-test-bytes"\nbytes = {bytes}\n'
SINK = '[[stage]]\nname = "{name}"\nrun = "carousel-test-bytes"\ninputs = ["{of}"]\nbytes = {bytes}\n{more}\n'
PORT, APART = port_block.take(), port_block.APART   # of the remote host; further hosts follow at this distance
DEVICE = os.environ.get("CAROUSEL_TEST_DEVICE", "cpu")   # of both hosts
HOST = '[hosts.{name}]\naddress = "{address}"\nport = {port}\nlauncher = "{launcher}"\n{more}\n'
# The remote host b, and this one by its own name: for stages to which b's frames return.
HOSTS = (HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more="")
         + HOST.format(name="a", address="127.0.0.1", port=PORT, launcher="here", more=""))


class Supervisor:
    """`carousel run` or `carousel host`. It may be killed and started again; its output is kept."""

    def __init__(self, world, name, words, run_name, inside=()):
        self.world, self.name, self.words, self.run_name, self.inside = world, name, list(words), run_name, list(inside)
        self.runtime = os.path.join(world.folder, "runtime-" + name)
        os.makedirs(self.runtime, exist_ok=True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        self.log = os.path.join(world.folder, name + ".log")
        self.report_file = os.path.join(world.folder, name + ".json")
        # An earlier supervisor of the same name has logged lines, too: a test that waits for those of its own must not see them.
        self.begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        self.process = None

    def start(self, *more):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*self.inside, self.world.carousel, *self.words, "--no-color", "--report", self.report_file, *more],
                                            env=self.environment, cwd=self.world.folder, stdout=log, stderr=log)
        return self

    def text(self):
        with open(self.log, "rb") as f:
            f.seek(self.begin)
            return f.read().decode("utf-8", "replace")

    def expect_log(self, words, seconds=20):
        try:
            wait_for(f"{self.name} says \"{words}\"", lambda: re.search(words, self.text()), seconds)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.text()[-3000:]}") from None

    def command(self, *words):
        return subprocess.run([self.world.carousel, *words, "-p", self.run_name], env=self.environment, capture_output=True, text=True,
                              timeout=30, check=False)

    def ps(self):
        try:
            return json.loads(self.command("ps", "--json").stdout or "{}")
        except json.JSONDecodeError:
            return {}

    def has_frames(self, name, coordinator, more_than=3):
        """Waits until its stage has taken more than this many frames; on a timeout the error contains the output of both hosts."""
        try:
            wait_for(f"frames at {self.name}/{name}", lambda: (self.stage(name).get("frames") or 0) > more_than)
        except AssertionError as e:
            raise AssertionError(f"{e}\n--- here:\n{coordinator.text()[-2000:]}\n--- {self.name}:\n{self.text()[-2000:]}") from None

    def stage(self, name):
        return next((s for s in self.ps().get("stages") or [] if s["name"] == name), {})

    def kill(self, name):
        pid = self.stage(name).get("pid")
        if pid:
            os.kill(pid, signal.SIGKILL)
        return bool(pid)

    def kill_supervisor(self, *more):
        """SIGKILL; the next one takes the run over. Returns False if it can't be killed now."""
        if not may_be_killed(self.process, self.ps()):
            return False
        self.process.kill()
        self.process.wait()
        self.start(*more)
        return True

    def supervisor_is_killed(self, *more):
        wait_for(f"a supervisor of {self.name} that can be killed", lambda: self.kill_supervisor(*more))

    def lose(self):
        """As if the machine had failed: all of its processes at the same time, and its run with its rings.
        Returns what its sink had delivered."""
        return lose_run(self.process, os.path.join(self.runtime, "carousel", self.run_name), [s["pid"] for s in self.ps().get("stages") or [] if s.get("pid")])

    def lose_memory(self, case):
        """Its processes and its memory, as after a restart of the machine, but not its run's runtime directory. Returns what its sink had delivered."""
        folder, aside = os.path.join(self.runtime, "carousel", self.run_name), os.path.join(self.world.folder, "aside")
        pids = [s["pid"] for s in self.ps()["stages"]]
        case.addCleanup(remove_memory, run_id_in(folder))   # in case anything below fails: nothing else removes it
        self.process.send_signal(signal.SIGSTOP)   # it notices no death, and dies last
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        shutil.copytree(folder, aside, ignore=lambda _, names: [n for n in names if n.endswith(".sock")])
        delivered = lose_run(self.process, folder, pids)
        os.rename(aside, folder)
        return delivered

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def wait(self, seconds=40):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {seconds} s:\n{self.text()[-3000:]}") from None

    def report(self):
        with open(self.report_file, encoding="utf-8") as f:
            return json.load(f)

    def end(self):
        for _ in range(2):
            if self.process and self.process.poll() is None:
                self.interrupt()
                time.sleep(0.1)
        if self.process:
            end_process(self.process)


def kill_in_turn(victims, dice):
    """Each (host, stage) once, in a random order and 20 to 150 ms apart; waits for a stage that is down."""
    dice.shuffle(victims)
    for host, stage in victims:
        time.sleep(dice.uniform(0.02, 0.15))
        wait_for(f"a process of {host.name}/{stage}", lambda h=host, n=stage: h.kill(n))


class World:
    def __init__(self, programs):
        self.carousel = os.path.join(os.path.abspath(programs), "carousel")
        self.folder = tempfile.mkdtemp(prefix="carousel-hosts-")
        self.all = []

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def coordinator(self, file, *options, inside=()):
        s = Supervisor(self, "near", ["run", file, "--device", DEVICE, *options], os.path.basename(file)[:-5], inside)
        self.all.append(s)
        return s

    def remote(self, file, name, *options, inside=()):
        s = Supervisor(self, name, ["host", "--file", file, "--as", name, "--device", DEVICE, *options], os.path.basename(file)[:-5] + "." + name,
                       inside)
        self.all.append(s)
        return s

    def end(self):
        for s in self.all:
            s.end()
        shutil.rmtree(self.folder, True)
