"""Supervisor and stages in one container, the programs of ports in another: each has its own pid, ipc, mount, user, network and uts
namespaces, a read-only root and uid 1000910000, which no passwd file has; they share one directory. Programs, stages and the supervisor are
killed, and each container restarts what it lost. Usage: test_two_containers.py BUILD [--kills N]"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "support"), os.path.join(TESTS, "stages", "python")]
from processes import descendants_of, is_alive, skip, wait_for  # noqa: E402
from seeds import scaled, seed  # noqa: E402

words = argparse.ArgumentParser()
words.add_argument("build", type=os.path.abspath)
words.add_argument("--kills", type=int, default=12)
ARGS = words.parse_args()
PORT_IO = os.path.join(ARGS.build, "carousel-test-port-io")
PYTHON_IO = os.path.join(TESTS, "stages", "python", "port_io.py")
PYTHON_FOLDER = os.path.join(ARGS.build, "python")
SHARED = "/mnt"   # where both containers see the directory
RUN = SHARED + "/carousel/apart"
PIPELINE = f"""[pipeline]
name = "apart"
device = "cpu"
supervisor_grace_s = 30
[[stage]]
name = "camera"
run = "port"
output = {{ value = "u64[512]", part = "f32[64]" }}
[[stage]]
name = "middle"
run = "{ARGS.build}/carousel-test-number"
inputs = ["camera"]
[[stage]]
name = "sink"
run = "{ARGS.build}/carousel-test-number"
inputs = ["middle"]
sink = true
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""
UNSHARE = ["unshare", "--map-root-user", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child", "--mount-proc"]
# The container's process 1 is a shell that runs the lines of its input. "$1": the shared directory.
INSIDE = f"""set -e
mount --bind "$1" {SHARED}
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -o remount,bind,ro /
cd {SHARED}
exec unshare --map-user=1000910000 --map-group=0 sh"""
# Restarts a program until it ends by itself, as a container's restart policy does. $1: its log.
RESTART = """restart() {
log=$1; shift
while [ ! -e over ]; do
  code=0; "$@" >>$log 2>&1 || code=$?
  [ $code != 0 ] || break
  [ $code != 99 ] || { echo "$*" >>damaged; break; }
  sleep 0.05
done
echo $log >>ended
}
"""

# What the kernel permits between siblings: the first one receives a pidfd of the second one.
WATCHES = """import errno, select, signal, socket
listener = socket.socket(socket.AF_UNIX); listener.bind("fence.sock"); listener.listen()
_, fds, _, _ = socket.recv_fds(listener.accept()[0], 1, 1)
poll = select.poll(); poll.register(fds[0], select.POLLIN)
assert poll.poll(100) == []
try: signal.pidfd_send_signal(fds[0], signal.SIGKILL)
except OSError as refused: print(errno.errorcode[refused.errno], flush=True)
print("ended" if poll.poll(20000) else "not seen", flush=True)
"""
IS_WATCHED = """import os, socket, time
socket.send_fds((s := socket.socket(socket.AF_UNIX), s.connect("fence.sock"))[0], [b"p"], [os.pidfd_open(os.getpid())])
time.sleep(60)
"""


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return [word.decode() for word in f.read().split(b"\0")]
    except OSError:
        return []


class Container:
    def __init__(self, shared):
        environment = {**os.environ, "XDG_RUNTIME_DIR": SHARED, "TMPDIR": SHARED, "PYTHONPATH": PYTHON_FOLDER, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen([*UNSHARE, "sh", "-c", INSIDE, "sh", shared], stdin=subprocess.PIPE, text=True, env=environment,
                                        start_new_session=True)
        self.do(RESTART)

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def find(self, *wanted):
        """Pids, as this namespace numbers them, of the processes whose command line has these words."""
        return [pid for pid in descendants_of(self.process.pid) if "unshare" not in command_of(pid)
                and all(any(word == w or word.endswith("/" + w) for word in command_of(pid)) for w in wanted)]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Apart:
    """One run with its two containers. `programs`: {port: command line} of the second container."""

    def __init__(self, programs):
        self.shared = tempfile.mkdtemp(prefix="carousel-apart-")
        os.chmod(self.shared, 0o700)
        self.programs = programs
        self.write("apart.toml", PIPELINE)
        self.containers = []
        self.run, self.ports = self.container(), None
        self.run.do(f"restart run.log {ARGS.build}/carousel run {SHARED}/apart.toml --no-color --report {SHARED}/report.json &")
        self.start_ports()

    def container(self):
        self.containers.append(Container(self.shared))
        return self.containers[-1]

    def start_ports(self):
        self.ports = self.container()
        for port, command in self.programs.items():
            self.ports.do(f"restart {port}.log {' '.join(command)} &")

    def close(self):
        for each in self.containers:
            if each.process.poll() is None:
                each.kill()
        shutil.rmtree(self.shared, True)

    def write(self, name, text):
        with open(os.path.join(self.shared, name), "w", encoding="utf-8") as f:
            f.write(text)

    def text(self, name):
        try:
            with open(os.path.join(self.shared, name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def logs(self):
        return "".join(f"--- {name}\n{self.text(name)[-1500:]}\n" for name in ("run.log", *(p + ".log" for p in self.programs), "damaged"))

    def wait(self, what, condition, seconds=60):
        try:
            return wait_for(what, condition, seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.logs()}") from None

    def frames_after(self, before):
        """Each program has printed a frame beyond the given logs."""
        return all("frame " in self.text(port + ".log")[length:] for port, length in before.items())

    def log_lengths(self):
        return {port: len(self.text(port + ".log")) for port in self.programs}

    def processes(self, role):
        if role == "supervisor":
            return self.run.find("carousel", "run")
        if role == "stage":
            return self.run.find("carousel-test-number")
        return self.ports.find(*self.programs[role][-2:])

    def kill(self, role, chance):
        """Kills a process of this role as soon as there is one."""
        if role == "container":
            self.ports.kill()
            self.start_ports()
            return
        adoptions = self.text("run.log").count("adopted apart")
        for _ in range(3):
            try:
                os.kill(chance.choice(self.wait(f"a process: {role}", lambda: self.processes(role))), signal.SIGKILL)
            except ProcessLookupError:   # it ended meanwhile
                continue
            if role == "supervisor":   # if all others died before the next one is there, the memory would be lost with them
                self.wait("the adoption of the run", lambda: self.text("run.log").count("adopted apart") > adoptions)
            return
        raise AssertionError(f"no process stays: {role}\n{self.logs()}")

    def end(self):
        """Ends the run in order; returns its report."""
        before = self.log_lengths()
        self.wait("frames of all programs", lambda: self.frames_after(before))
        os.kill(self.wait("the supervisor", lambda: self.processes("supervisor"))[0], signal.SIGTERM)
        names = {"run.log", *(port + ".log" for port in self.programs)}
        self.wait("the end of the run and of its programs", lambda: set(self.text("ended").split()) >= names)
        if self.text("damaged"):
            raise AssertionError("a program received a damaged frame\n" + self.logs())
        return json.loads(self.text("report.json"))


def torment(programs, kills, chosen_seed):
    chance = random.Random(chosen_seed)
    order = ["container"] * (kills // 20) + ["supervisor"] * max(1, kills // 8)
    usual = ("stage", *programs)
    order += [usual[k % len(usual)] for k in range(kills - len(order))]
    chance.shuffle(order)
    apart = Apart(programs)
    try:
        before = apart.log_lengths()
        apart.wait("first frames", lambda: apart.frames_after(before))
        for k, role in enumerate(order):
            if k % 3 == 0:   # after the programs have certainly worked again
                before = apart.log_lengths()
                apart.wait("frames", lambda before=before: apart.frames_after(before))
            time.sleep(chance.random() * 0.25)
            apart.kill(role, chance)
        report = apart.end()
        count = {role: order.count(role) for role in sorted(set(order))}
        figures = {k: report[k] for k in ("frames", "lost", "repeated", "torn")}
        print(f"{len(order)} kills {count}, seed {chosen_seed}: {figures}", flush=True)
        if figures["frames"] == 0 or any(figures[k] for k in ("lost", "repeated", "torn")):
            raise AssertionError(f"{figures}\n{apart.logs()}")
    finally:
        apart.close()


def check_fence():
    """The end of a process crosses pid namespaces by its pidfd, a signal does not."""
    shared = tempfile.mkdtemp(prefix="carousel-fence-")
    watches, watched = Container(shared), Container(shared)
    try:
        for name, text in (("watches.py", WATCHES), ("watched.py", IS_WATCHED)):
            with open(os.path.join(shared, name), "w", encoding="utf-8") as f:
                f.write(text)
        watches.do(f"{sys.executable} watches.py >seen 2>&1 &")
        wait_for("the listener", lambda: os.path.exists(os.path.join(shared, "fence.sock")))
        watched.do(f"{sys.executable} watched.py &")

        def seen():
            with open(os.path.join(shared, "seen"), encoding="utf-8") as f:
                return f.read().split()
        wait_for("a refused signal", lambda: seen() == ["EINVAL"])
        for pid in watched.find("watched.py"):
            os.kill(pid, signal.SIGKILL)
        wait_for(f"the end of the process: {seen()}", lambda: seen() == ["EINVAL", "ended"])
    finally:
        watches.kill()
        watched.kill()
        shutil.rmtree(shared, True)


def python_with_numpy():
    for python in (os.environ.get("CAROUSEL_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-B", "-c", "import numpy, carousel"], env={**os.environ, "PYTHONPATH": PYTHON_FOLDER},
                                     capture_output=True, check=False).returncode == 0:
            return python
    return None


def main():
    if subprocess.run([*UNSHARE, "sh", "-c", "mount -o remount,bind,ro / && unshare --map-user=1000910000 --map-group=0 true"],
                      capture_output=True, check=False).returncode != 0:
        skip("no container with namespaces of its own can be made here (unshare)")
    check_fence()
    kills, chosen = scaled(ARGS.kills), seed()
    cpp = {"camera": [PORT_IO, "write", RUN, "camera", "500"], "analysis": [PORT_IO, "read", RUN, "analysis"]}
    variants = [cpp]
    if python := python_with_numpy():
        variants.append({"camera": [python, PYTHON_IO, "write", RUN, "camera", "0.0005"], "analysis": [python, PYTHON_IO, "read", RUN, "analysis"]})
    else:
        print("programs in Python are left out: no interpreter that the module was built for has NumPy")
    for k, programs in enumerate(variants):
        torment(programs, kills // len(variants), chosen + k)


if __name__ == "__main__":
    main()
