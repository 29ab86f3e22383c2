#!/usr/bin/env python3
"""What a process can do to a run that it is no part of: the table "Strangers" of pipelines/README.md, row by row, as another user
(root alone can become one; else that half is left out, and said) and as this user. Usage: test_strangers.py PROGRAMS PIPELINES"""
import json, os, shutil, signal, socket, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, is_alive, skip, wait_for  # noqa: E402

PROGRAMS, PIPELINES = sys.argv[1:3]
NOBODY = 65534
folder = tempfile.mkdtemp(prefix="carousel-strangers-", dir="/tmp")
os.chmod(folder, 0o755)  # what closes the run is its own runtime folder
environment = dict(os.environ, XDG_RUNTIME_DIR=folder + "/runtime", TMPDIR=folder)
os.makedirs(folder + "/runtime", mode=0o700)


def carousel(*words):
    return subprocess.run([f"{PROGRAMS}/carousel", *words], env=environment, capture_output=True, text=True, timeout=30)


def as_user(uid, work):
    """What work() says in a process of that user, or the name of its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if uid != os.getuid():
                os.setgroups([]), os.setgid(uid), os.setuid(uid)
            said = str(work())
        except OSError as e: said = type(e).__name__
        except BaseException as e: said = f"{type(e).__name__}: {e}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    said = b"".join(iter(lambda: os.read(read, 65536), b"")).decode()
    os.close(read), os.waitpid(pid, 0)
    return said


class Run:
    def __init__(self):
        self.log = open(folder + "/log", "wb")
        self.process = subprocess.Popen(
            [f"{PROGRAMS}/carousel", "run", f"{PIPELINES}/demo.toml", "--device", "cpu", "--size", "160x90", "--fps", "60", "--set",
             "geometry.triangles=500", "--frames", "100000", "--report", folder + "/report.json", "--no-color"],
            env=environment, cwd=folder, stdout=self.log, stderr=self.log)
        self.folder = f"{folder}/runtime/carousel/demo"
        wait_for("all stages run", lambda: self.stages() and all(s["state"] == "running" for s in self.stages()))
        self.id = json.loads(open(self.folder + "/run.json").read())["run_id"]
        self.block = f"/dev/shm/carousel-{self.id}"

    def stages(self):
        try: return json.loads(carousel("ps", "--json", "-p", "demo").stdout)["stages"]
        except (ValueError, KeyError): return []

    def frames(self): return next(s["frames"] for s in self.stages() if s["name"] == "display")

    def pid(self, name): return next(s["pid"] for s in self.stages() if s["name"] == name)

    def ring_memory(self, pid):
        """A descriptor of a stage through which ring memory is reached."""
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                if "memfd:" in os.readlink(f"/proc/{pid}/fd/{fd}"): return f"/proc/{pid}/fd/{fd}"
            except OSError: pass
        raise AssertionError("no ring memory among the descriptors of the stage")


def ask(path, message):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(10)
        s.connect(path)
        s.send(json.dumps(message).encode())
        return s.recv(1 << 20).decode()


def opened(path, flags):
    os.close(os.open(path, flags))
    return "yes"


def rows(run):
    """(what is tried, how, what another user gets, what this user gets)"""
    control, stage = run.folder + "/control.sock", run.pid("vertex")
    memory = run.ring_memory(stage)
    yield "list the run's folder", lambda: len(os.listdir(run.folder)) > 0, "PermissionError", "True"
    yield "ask ps", lambda: '"stages"' in ask(control, {"command": "ps"}), "PermissionError", "True"
    yield ("take a seat that somebody has", lambda: "has a process already" in ask(control, {"hello": {"stage": "vertex", "pid": 1}}),
           "PermissionError", "True")
    def ordered(order): return '"ok":true' in ask(control, {"command": order, "stage": "display"}).replace(" ", "")
    yield "hold a stage over it, and let it go on", lambda: ordered("stop") and ordered("cont"), "PermissionError", "True"
    yield "read the control block", lambda: opened(run.block, os.O_RDONLY), "PermissionError", "yes"
    yield "write into it", lambda: opened(run.block, os.O_RDWR), "PermissionError", "yes"
    yield "cut it off", lambda: os.truncate(run.block, 0) or "yes", "PermissionError", None
    if os.stat("/dev/shm").st_mode & 0o1000:
        yield "remove its name", lambda: os.unlink(run.block) or "yes", "PermissionError", None
    yield "open ring memory through /proc", lambda: opened(memory, os.O_RDWR), "PermissionError", "yes"
    yield "open a stage's memory", lambda: opened(f"/proc/{stage}/mem", os.O_RDWR), "PermissionError", None
    yield "signal a stage", lambda: os.kill(stage, 0) or "yes", "PermissionError", "yes"


def a_block_that_is_cut_off_ends_its_run():
    run = Run()
    try:
        pids = [s["pid"] for s in run.stages()]
        os.truncate(run.block, 0)
        assert run.process.wait(30) == -signal.SIGBUS, run.process.returncode
        wait_for("the stages to end", lambda: not any(map(is_alive, pids)))
        assert run.block in carousel("clean").stdout and not os.path.exists(run.block)
    finally:
        end_process(run.process)


def main():
    run = Run()
    try:
        before, wrong = {s["name"]: s["pid"] for s in run.stages()}, []
        strangers = [(os.getuid(), 3)] + ([(NOBODY, 2)] if os.getuid() == 0 else [])
        for what in rows(run):
            for uid, column in strangers:
                # Root may open what others can't, so its own column stands for a user's own.
                if what[column] is None: continue
                got = as_user(uid, what[1])
                print(f"{'another user' if uid == NOBODY else 'this user':13} {what[0]:36} {got}")
                if got != what[column]: wrong.append((uid, what[0], got, what[column]))
        assert not wrong, wrong
        assert {s["name"]: s["pid"] for s in run.stages()} == before, "a stranger has ended a stage"
        # The name of the block is for those who come: whoever is there goes on.
        os.unlink(run.block)
        delivered = run.frames()
        wait_for("frames behind the name's end", lambda: run.frames() > delivered + 20)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(60) == 0, open(folder + "/log").read()[-3000:]
        report = json.load(open(folder + "/report.json"))
        assert report["lost"] == report["repeated"] == report["torn"] == report["restarts"] == 0, report
        a_block_that_is_cut_off_ends_its_run()
    finally:
        end_process(run.process)
        shutil.rmtree(folder, True)
    if os.getuid() != 0: skip("only root can become another user: that half was left out")


main()
