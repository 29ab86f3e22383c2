#!/usr/bin/env python3
"""What an external process can do to a run: the table "Other processes" of pipelines/docs/security.md, cell by cell. As root the pipeline and
"this user" are one unprivileged user, "another user" is a second one. Without root this program can't act as another user: that column is
left out, and the output reports it. Usage: test_unauthenticated_peers.py PROGRAMS PIPELINES"""
import collections, http.client, json, os, re, shutil, signal, socket, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import end_process, is_alive, skip, wait_for  # noqa: E402

PROGRAMS, PIPELINES = map(os.path.abspath, sys.argv[1:3])
IS_ROOT = os.getuid() == 0
OWN, OTHER = (65533, 65534) if IS_ROOT else (os.getuid(), None)
folder = tempfile.mkdtemp(prefix="carousel-strangers-", dir="/tmp")
os.chmod(folder, 0o755)  # only its own runtime directory protects the run
environment = dict(os.environ, XDG_RUNTIME_DIR=folder + "/runtime", TMPDIR=folder + "/own", HOME=folder + "/own")
for mine in ("/runtime", "/own"):
    os.makedirs(folder + mine, mode=0o700)
    if IS_ROOT: os.chown(folder + mine, OWN, OWN)
as_own = dict(user=OWN, group=OWN, extra_groups=[]) if IS_ROOT else {}
left_out = []  # what is not available here, and why


def carousel(*words):
    return subprocess.run([f"{PROGRAMS}/carousel", *words], env=environment, cwd=folder + "/own", capture_output=True, text=True,
                          timeout=60, **as_own)


def as_user(uid, work):
    """The result of work() in a process of that user, or the name of its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if uid != os.getuid(): os.setgroups([]), os.setgid(uid), os.setuid(uid)
            output = str(work())
        except PermissionError: output = "PermissionError"
        except BaseException as e: output = f"{type(e).__name__}: {e}"
        os.write(write, output.encode())
        os._exit(0)
    os.close(write)
    output = b"".join(iter(lambda: os.read(read, 65536), b"")).decode()
    os.close(read), os.waitpid(pid, 0)
    return output


class Run:
    def __init__(self, *more):
        with open(folder + "/own/log", "wb") as log:
            os.fchmod(log.fileno(), 0o600)
            self.process = subprocess.Popen(
                [f"{PROGRAMS}/carousel", "run", f"{PIPELINES}/demo.toml", "--device", "cpu", "--size", "160x90", "--fps", "60",
                 "--set", "geometry.triangles=500", "--out", "", "--report", folder + "/own/report.json", "--no-color", *more],
                env=environment, cwd=folder + "/own", stdout=log, stderr=log, **as_own)
        self.folder = f"{folder}/runtime/carousel/demo"
        self.all_run()
        with open(self.folder + "/run.json") as f: self.id = json.load(f)["run_id"]
        self.control, self.block = self.folder + "/control.sock", f"/dev/shm/carousel-{self.id}"

    def output(self):
        with open(folder + "/own/log", errors="replace") as f: return f.read()

    def stages(self):
        try: return {s["name"]: s for s in json.loads(carousel("ps", "--json", "-p", "demo").stdout)["stages"]}
        except (ValueError, KeyError): return {}

    def all_run(self):
        def they_do():
            stages = self.stages().values()
            return stages and all(s["state"] == "running" and s["frames"] > 5 for s in stages)
        wait_for("all stages run", they_do)

    def frames(self): return self.stages()["display"]["frames"]

    def pid(self, name): return self.stages()[name]["pid"]

    def replaced(self, name, pid):
        wait_for(f"a successor of {name}", lambda: self.pid(name) not in (None, pid))
        self.all_run()

    def ring_memory(self, pid):
        """A descriptor of a stage that gives access to ring memory."""
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
    return True


def contents(path):
    with open(path, "rb") as f: return f.read()


def rewritten(path, at=0):
    """Reads four bytes and writes them back unchanged."""
    fd = os.open(path, os.O_RDWR)
    try: return os.pwrite(fd, os.pread(fd, 4, at), at) == 4
    finally: os.close(fd)


def scribbled(path, begin):
    """Overwrites everything from there on, three times."""
    fd = os.open(path, os.O_RDWR)
    try: return all(os.pwrite(fd, os.urandom(size := os.fstat(fd).st_size - begin), begin) == size for _ in range(3))
    finally: os.close(fd)


def memory_rewritten(pid):
    """Rewrites the first bytes of its program where they are mapped, unchanged, so that the stage continues."""
    first = contents(f"/proc/{pid}/maps").decode().split("-")[0]
    return rewritten(f"/proc/{pid}/mem", int(first, 16))


class Dashboard:
    def __init__(self, output):
        found = re.search(r"http://[\d.]+:(\d+)/\?token=([0-9a-f]{32})", output)
        self.port, self.token = int(found[1]), found[2]

    def ask(self, method, path, token=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            c.request(method, path, headers={"X-Carousel-Token": token} if token else {})
            answer = c.getresponse()
            answer.read()
            return answer.status
        finally: c.close()

    def acts(self, token):
        """True: done; False: refused because of the missing token."""
        answers = [self.ask("POST", "/stages/display/" + verb, token) for verb in ("stop", "cont")]
        if answers in ([200, 200], [403, 403]): return answers[0] == 200
        raise AssertionError(answers)


# `other`, `own`: how a "no" shows for each user; None: not tried as that user here. `after` awaits what a success of this user's
# leads to. `unless`: (column, why its "yes" is a "no" here).
Attempt = collections.namedtuple("Attempt", "row what work other own after unless",
                                 defaults=("PermissionError", "False", None, (None, "")))


def has(path, text):
    try: return text in contents(path).decode()
    except OSError: return False


def hidden_processes():
    lines = contents("/proc/mounts").decode().splitlines()
    return any(re.search(r"hidepid=(?!0|off)", line) for line in lines if line.split()[1] == "/proc")


def yama_forbids():
    path = "/proc/sys/kernel/yama/ptrace_scope"
    return os.path.exists(path) and contents(path).strip() != b"0"


def attempts(run, dashboard):
    pids = {s["pid"] for s in run.stages().values()} | {run.process.pid}
    vertex, trace = run.pid("vertex"), run.block + ".trace"
    sticky = os.stat("/dev/shm").st_mode & 0o1000
    yama = (1, "Yama") if yama_forbids() else (None, "")

    yield Attempt("see its processes and their command lines", "command lines",
                  lambda: all(b"carousel" in contents(f"/proc/{pid}/cmdline") for pid in pids), other="False",
                  unless=(0, "hidepid") if hidden_processes() else (None, ""))
    row = "list the run's runtime directory, read its logs"
    yield Attempt(row, "list the folder", lambda: "run.json" in os.listdir(run.folder))
    yield Attempt(row, "read a log", lambda: len(contents(run.folder + "/logs/@carousel.jsonl")) > 0)
    yield Attempt(row, "read run.json", lambda: run.id in contents(run.folder + "/run.json").decode())
    yield Attempt("connect to the control socket, ask `ps`", "ps", lambda: '"stages"' in ask(run.control, {"type": "ps"}))

    row = "`stop`, `cont`, `kill`, `inject` over it"
    def ordered(order, stage, **more):
        return json.loads(ask(run.control, {**({"type": order} if order in ("kill", "inject") else {"type": "seat", "order": order}), "stage": stage, **more}))["ok"] is True
    yield Attempt(row, "stop", lambda: ordered("stop", "display"))
    yield Attempt(row, "cont", lambda: ordered("cont", "display"))
    pid = run.pid("display")
    yield Attempt(row, "kill", lambda: ordered("kill", "display"), after=lambda pid=pid: run.replaced("display", pid))
    pid = run.pid("fragment")
    yield Attempt(row, "inject", lambda: ordered("inject", "fragment", fault="abort"),
                  after=lambda pid=pid: run.replaced("fragment", pid))

    def seated(stage): return '"run_id"' in ask(run.control, {"type": "hello", "stage": stage, "pid": os.getpid()})
    yield Attempt("take the seat of a stage that has a process", "hello", lambda: seated("vertex"))
    assert carousel("down", "fragment", "-p", "demo").returncode == 0
    wait_for("fragment is down", lambda: run.stages()["fragment"]["state"] == "down")
    def up_again():
        wait_for("the guest has left", lambda: carousel("up", "fragment", "-p", "demo").returncode == 0)
        run.all_run()
    yield Attempt("take the seat of a stage that is down", "hello", lambda: seated("fragment"), after=up_again)

    yield Attempt("read the control block", "", lambda: opened(run.block, os.O_RDONLY))
    yield Attempt("write into it", "", lambda: rewritten(run.block))
    yield Attempt("truncate it", "", lambda: os.truncate(run.block, 0) or True, own=None)
    if sticky: yield Attempt("remove its name", "", lambda: os.unlink(run.block) or True, own=None)
    else: left_out.append("another user who removes names: /dev/shm is not sticky here")

    assert carousel("trace", folder + "/own/t.json", "-p", "demo", "--seconds", "0.3").returncode == 0
    yield Attempt("read the trace's rings", "", lambda: len(contents(trace)) > 0)
    yield Attempt("write into them", "", lambda: rewritten(trace))
    yield Attempt("truncate them", "", lambda: os.truncate(trace, 0) or True, own=None)
    if sticky: yield Attempt("remove their name", "", lambda: os.unlink(trace) or True, own=None)

    memory = run.ring_memory(vertex)
    yield Attempt("open a stage's ring memory through /proc", "for reading", lambda: opened(memory, os.O_RDONLY))
    yield Attempt("open a stage's ring memory through /proc", "for writing", lambda: opened(memory, os.O_RDWR))
    row = "read or write a stage's memory through /proc"
    yield Attempt(row, "memory", lambda: memory_rewritten(vertex), own="PermissionError", unless=yama)
    yield Attempt(row, "mem alone", lambda: opened(f"/proc/{vertex}/mem", os.O_RDWR), own="PermissionError", unless=yama)
    yield Attempt(row, "environment", lambda: b"PATH=" in contents(f"/proc/{vertex}/environ"))
    yield Attempt("send a signal to a stage", "SIGTERM to supervisor",
                  lambda: os.kill(run.process.pid, signal.SIGTERM) or True, own=None)
    yield Attempt("send a signal to a stage", "SIGKILL", lambda: os.kill(vertex, signal.SIGKILL) or True,
                  after=lambda: run.replaced("vertex", vertex))
    yield Attempt("send SIGCONT from the same session (`su` there)", "to supervisor",
                  lambda: os.kill(run.process.pid, signal.SIGCONT) or True)
    if dashboard is None: return
    yield Attempt("read the web UI", "", lambda: {dashboard.ask("GET", p) for p in ("/", "/status.json", "/snapshot.png")} == {200})
    row = "act through the web UI without its token (`X-Carousel-Token`)"
    yield Attempt(row, "no token", lambda: dashboard.acts(None), other="False")
    yield Attempt(row, "another token", lambda: dashboard.acts("0" * 32), other="False")
    yield Attempt("act through the web UI with it", "", lambda: dashboard.acts(dashboard.token))


def table():
    """{row: (cell of another user, cell of this user)}"""
    with open(PIPELINES + "/docs/security.md") as f: text = f.read().split("\n## Other processes\n")[1].split("\n## ")[0]
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    return {r[0]: (r[1], r[2].rstrip(" |")) for r in rows[1:]}


class Tries:
    def __init__(self):
        self.cells, self.tried, self.wrong = table(), set(), []

    def note(self, user_index, row, what, got, no="False", unless=""):
        """Records the result in the cell's column (0: another user, 1: this one)."""
        self.tried.add((row, user_index))
        cell, name = self.cells[row][user_index], ("another user", "this user")[user_index]
        wanted = no if unless or cell.startswith("no") else "True"
        print(f"{name:13} {row[:52]:53}{what:22} {got}{f' ({unless})' if unless else ''}", flush=True)
        if got != wanted: self.wrong.append((name, row, what, got, f"the table: {cell}"))

    def all_of(self, run, dashboard):
        for a in attempts(run, dashboard):
            for user_index, uid, no in ((0, OTHER, a.other), (1, OWN, a.own)):
                if uid is None or no is None: continue
                self.note(user_index, a.row, a.what, as_user(uid, a.work), no, a.unless[1] if a.unless[0] == user_index else "")
            if a.after and not self.wrong: a.after()
        assert not self.wrong, self.wrong


def the_trace_is_written_over_and_cut_off(tries, run):
    """Both while stages stamp. Overwriting has no effect; truncating kills the stages, and their successors continue without a trace."""
    trace, before = run.block + ".trace", {n: s["pid"] for n, s in run.stages().items()}
    def stamps(): return contents(trace)[64:72]  # number of the first ring's next record
    old = stamps()
    tracer = subprocess.Popen([f"{PROGRAMS}/carousel", "trace", folder + "/own/t.json", "-p", "demo", "--seconds", "30"],
                              env=environment, cwd=folder + "/own", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              **as_own)
    try:
        wait_for("stamps", lambda: stamps() != old)
        tries.note(1, "write into them", "at all records", as_user(OWN, lambda: scribbled(trace, 64)))
        delivered, old = run.frames(), stamps()
        wait_for("stamps that go on", lambda: run.frames() > delivered + 20 and stamps() != old)
        assert {n: s["pid"] for n, s in run.stages().items()} == before and tracer.poll() is None
        tries.note(1, "truncate them", "", as_user(OWN, lambda: os.truncate(trace, 0) or True))
        def all_replaced():
            # The tracer has died of it, too, and each stage is to stamp once more.
            as_user(OWN, lambda: ask(run.control, {"type": "trace"}))
            return all(s["pid"] not in (None, before[n]) for n, s in run.stages().items())
        wait_for("stages that are replaced", all_replaced)
    finally: end_process(tracer)
    run.all_run()
    assert "SIGBUS" in run.output(), run.output()[-3000:]
    tries.note(1, "remove their name", "", as_user(OWN, lambda: os.unlink(trace) or True))


def the_name_serves_later_processes_only(tries, run):
    tries.note(1, "remove its name", "", as_user(OWN, lambda: os.unlink(run.block) or True))
    delivered = run.frames()
    wait_for("frames behind the name's end", lambda: run.frames() > delivered + 20)


def a_stage_that_dies_after_the_name_was_removed_ends_the_run():
    run = Run()
    try:
        os.unlink(run.block)
        os.kill(run.pid("display"), signal.SIGKILL)
        assert run.process.wait(60) != 0 and f"attaching to the control block {run.block}: No such file" in run.output(), run.output()
    finally: end_process(run.process)


def a_block_that_is_cut_off_ends_its_run(tries):
    run = Run()
    try:
        pids = [s["pid"] for s in run.stages().values()]
        tries.note(1, "truncate it", "", as_user(OWN, lambda: os.truncate(run.block, 0) or True))
        assert run.process.wait(30) == -signal.SIGBUS, run.process.returncode
        wait_for("the stages to end", lambda: not any(map(is_alive, pids)))
        assert run.block in carousel("clean").stdout and not os.path.exists(run.block)
    finally: end_process(run.process)


def no_process_trusts_a_socket_made_by_another_user():
    """A user without a runtime directory has his runs in /tmp/carousel-UID, which another user may have created."""
    place = f"/tmp/carousel-{OWN}"
    if OTHER is None or os.path.exists(place): return left_out.append(f"another user who has made {place}")
    (ready, send_ready), (stay, release) = os.pipe(), os.pipe()

    def listen():
        os.makedirs(place + "/demo", mode=0o755)
        with open(place + "/demo/run.json", "w") as f:
            born = int(contents("/proc/self/stat").split()[21])
            json.dump({"pid": os.getpid(), "start_time": born, "run_id": "0" * 16, "name": "demo"}, f)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(place + "/demo/control.sock")
            os.chmod(place + "/demo/control.sock", 0o666)
            s.listen(64)
            s.setblocking(False)
            os.write(send_ready, b"r")
            os.read(stay, 1)
            received = []
            while True:
                try: c, _ = s.accept()
                except BlockingIOError: return received
                with c: received.append(c.recv(65536))

    received, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(received), os.close(release)
        os.write(answer, as_user(OTHER, listen).encode())
        os._exit(0)
    for fd in (answer, send_ready, stay): os.close(fd)
    try:
        assert os.read(ready, 1) == b"r"
        bare = {k: v for k, v in environment.items() if k != "XDG_RUNTIME_DIR"}
        begin = ["run", f"{PIPELINES}/demo.toml", "--device", "cpu", "--frames", "3"]
        for words in (begin, ["ps"], ["kill", "vertex", "-p", "demo"], ["down", "-p", "demo"], ["clean"]):
            p = subprocess.run([f"{PROGRAMS}/carousel", *words], env=bare, cwd=folder + "/own", capture_output=True, text=True,
                               timeout=60, **as_own)
            assert words[0] != "run" or f"{place} belongs to user {OTHER}" in p.stderr, p
            assert words[0] not in ("run", "kill", "down") or p.returncode != 0, p
    finally:
        os.close(release)
        output = os.read(received, 65536).decode()
        os.waitpid(pid, 0)
        shutil.rmtree(place, True)
    print("who was first in /tmp was told", output)  # some have connected, seen its owner, and left
    assert re.fullmatch(r"\[(b''(, )?)+\]", output), output


def main():
    def can_run(): return os.access(PROGRAMS + "/carousel-vertex", os.X_OK) and os.access(PIPELINES + "/demo.toml", os.R_OK)
    if as_user(OWN, can_run) != "True":
        skip(f"a user without rights can't run the programs in {PROGRAMS}, or not read {PIPELINES}: no row was tried")
    has_dashboard = os.path.exists(PROGRAMS + "/carousel-web")
    tries, run = Tries(), Run("--http", "0") if has_dashboard else Run()
    try:
        dashboard = Dashboard(wait_for("the page's address", lambda: "token=" in run.output() and run.output())) if has_dashboard else None
        if dashboard: wait_for("a picture", lambda: dashboard.ask("GET", "/snapshot.png") == 200)
        else: left_out.append("the page: carousel-web is not built here")
        tries.all_of(run, dashboard)
        the_trace_is_written_over_and_cut_off(tries, run)
        if dashboard:
            named = [p for p in filter(str.isdigit, os.listdir("/proc")) if has(f"/proc/{p}/cmdline", dashboard.token)]
            assert not named, f"the page's token is in the command line of {named}"
        the_name_serves_later_processes_only(tries, run)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(60) == 0, run.output()[-3000:]
        with open(folder + "/own/report.json") as f: report = json.load(f)
        assert report["lost"] == report["repeated"] == report["torn"] == 0 and not report["dead_letters"], report
        a_stage_that_dies_after_the_name_was_removed_ends_the_run()
        a_block_that_is_cut_off_ends_its_run(tries)
        no_process_trusts_a_socket_made_by_another_user()
        assert not tries.wrong, tries.wrong
    finally:
        end_process(run.process)
        shutil.rmtree(folder, True)
    if OTHER is None: left_out.append("another user: only root can become one")
    missing = sorted((row, user_index) for row in tries.cells for user_index in (0, 1) if (row, user_index) not in tries.tried)
    assert left_out or not missing, f"nothing tries {missing}"
    if left_out: skip("; ".join(left_out))


main()
