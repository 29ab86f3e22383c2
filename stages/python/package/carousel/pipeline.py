"""Runs pipelines from Python with the program `carousel`."""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import weakref

from ._carousel import ConfigError, Error
from ._carousel import open as _open


def program():
    """Returns the path of `carousel`: next to this package, in its installation, or in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in ("../..", "../../../../bin"):   # BUILD/python/carousel, PREFIX/lib/carousel/python/carousel
        path = os.path.normpath(os.path.join(here, folder, "carousel"))
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    found = shutil.which("carousel")
    if not found:
        raise Error(f"no program carousel next to {here} or in PATH: build it (./pipelines/launch) or add its folder to PATH")
    return found


def _environment():
    """Python stages use this interpreter, which has the module, unless CAROUSEL_PYTHON names another.
    `python3` in PATH may be a different one."""
    return {**({"CAROUSEL_PYTHON": sys.executable} if sys.executable else {}), **os.environ}


def _remove(folder, owner):
    """Removes the folder, but only in the process that created it, because a forked child also has a copy of
    the finaliser."""
    if os.getpid() == owner:
        shutil.rmtree(folder, True)


def _parameter_text(value):
    """Returns a parameter's value in the form that `carousel set` reads: text unchanged, all other values as
    JSON, NumPy values as plain ones."""
    return value if isinstance(value, str) else json.dumps(value, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))


class Pipeline:
    """A pipeline file. start() runs it. Raises ConfigError if the file can't be read or parsed."""

    def __init__(self, file):
        self.file = os.path.abspath(file)
        try:
            with open(self.file, "rb") as text:
                sections = tomllib.load(text)
        except OSError as failure:
            raise ConfigError(f"{file}: {failure.strerror}") from None
        except tomllib.TOMLDecodeError as failure:
            raise ConfigError(f"{file}: {failure}") from None
        self.name = sections.get("pipeline", {}).get("name", os.path.splitext(os.path.basename(self.file))[0])

    def __repr__(self):
        return f"<carousel.Pipeline \"{self.name}\" of {self.file}>"

    def start(self, *, device=None, frames=None, fps=None, name=None, options=(), wait_s=60.0):
        """Starts the pipeline and returns a Running when all stages run; programs may enter its ports later. options: further
        arguments for `carousel run`, e.g. ["--out", ""]. Raises Error if it does not start, or does not run within wait_s seconds."""
        words = [program(), "run", self.file, "--no-color", "-p", name or self.name]
        for key, value in (("--device", device), ("--frames", frames), ("--fps", fps)):
            if value is not None:
                words += [key, str(value)]
        return Running(name or self.name, words + list(options), wait_s)


class Running:
    """A pipeline that this process has started. The run ends with stop(), after its last frame, at the end of
    `with`, or when this process exits.
    If this process is killed (SIGKILL, a fault) the run continues in the same way as without its supervisor:
    `carousel down` then ends it."""

    def __init__(self, name, words, wait_s):
        self.name = name
        folder = tempfile.mkdtemp(prefix="carousel-")
        self._owner = os.getpid()
        weakref.finalize(self, _remove, folder, self._owner)
        self._report, self.log = os.path.join(folder, "report.json"), os.path.join(folder, "log")
        self._ignores_interrupt = signal.getsignal(signal.SIGINT) is signal.SIG_IGN   # inherited if this is a background job of a script
        with open(self.log, "wb") as log:
            # Starts it in a separate session, so that Ctrl-C in a notebook interrupts the cell and not the
            # run.
            self._process = subprocess.Popen(words + ["--report", self._report], stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, start_new_session=True, env=_environment())
        atexit.register(self._end)
        self._await_start(wait_s)

    def _await_start(self, wait_s):
        until = time.monotonic() + wait_s
        while self._process.poll() is None and not self._has_started():
            if time.monotonic() > until:
                text = self.log_text()
                self._end()
                raise Error(f"{self.name} is not running after {wait_s:g} s: {text}")
            time.sleep(0.05)
        if self._process.poll() not in (None, 0) and not os.path.exists(self._report):
            raise Error(f"{self.name} did not start (exit code {self._process.poll()}): {self.log_text()}")

    def _has_started(self):
        state = self.state()
        if state == "waiting":   # it may wait for ports without a program; stages that do not depend on these
                                 # may already be done
            return {s["state"] for s in self.ps().get("stages", [{"state": "?"}])} <= {"running", "vacant", "done"}
        return state in ("running", "paused", "ending", "done")

    def _run_command(self, *words):
        done = subprocess.run([program(), *words], capture_output=True, text=True)
        if done.returncode != 0:
            text = done.stderr.strip() or done.stdout.strip()
            try:   # with --json a refusal is also JSON
                text = json.loads(text)["message"]
            except (ValueError, LookupError, TypeError):
                pass
            raise Error(f"carousel {' '.join(words)}: {text}")
        return done.stdout

    def log_text(self, lines=15):
        """Returns the last lines of the run's log."""
        with open(self.log, errors="replace") as text:
            return "\n".join(text.read().strip().splitlines()[-lines:])

    def state(self):
        """Returns "starting", "running", "paused", "waiting", ..., or "done" when it is over."""
        if self._process.poll() is not None:
            return "done"
        try:
            status = self.ps()
            if "pipeline" in status:   # otherwise only its shared-memory space exists: the run does not
                                       # accept requests yet, or not any more
                return status["pipeline"]["state"]
        except Error:   # not reachable yet, or not any more
            pass
        return "starting" if self._process.poll() is None else "done"

    def ps(self):
        """Returns the output of `carousel ps --json` for the run."""
        return json.loads(self._run_command("ps", "-p", self.name, "--json"))

    def kill(self, stage, sig="KILL"):
        """Sends a signal to a stage's process."""
        self._run_command("kill", stage, "-p", self.name, "-s", str(sig))

    def restart(self, stage):
        """Restarts a stage, with the program that is on disk now."""
        self._run_command("restart", stage, "-p", self.name)

    def set(self, **parameters):
        """Sets parameters during the run."""
        self._run_command("set", *(f"{k}={_parameter_text(v)}" for k, v in parameters.items()), "-p", self.name)

    def open(self, **options):
        """Opens the run to read its frames: carousel.open()."""
        return _open(self.name, **options)

    def wait(self, timeout_s=None):
        """Waits for the end of the run and returns its exit code; returns None if it still runs after timeout_s
        seconds."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def report(self):
        """Returns the report of a finished run; during the run its current values under the same keys. Values
        that are known only at the end are None during the run: lost, repeated, torn, ending, exit_code. ps()
        has more about a running one. Raises Error if a run wrote no report."""
        if self._process.poll() is None and (now := self._partial_report()):
            return now
        try:
            with open(self._report) as text:
                return json.load(text)
        except OSError:
            raise Error(f"{self.name} wrote no report (exit code {self._process.poll()}): {self.log_text()}") from None

    def _partial_report(self):
        """Returns None if the run has ended in the meantime."""
        try:
            status = self.ps()
        except Error:   # the run does not accept requests any more, or not yet
            if self.wait(10.0) is None:
                raise
            return None
        if "pipeline" not in status:   # only its shared-memory space exists
            self.wait(10.0)
            return None
        restarts = {}   # a stage has one entry per instance
        for each in status["stages"]:
            restarts[each["name"]] = restarts.get(each["name"], 0) + (each["restarts"] or 0)
        now = status["pipeline"]
        same = {key: now[key] for key in ("file", "device", "frames", "restarts", "stalls", "damaged", "kills_at")}
        only_at_the_end = dict.fromkeys(("lost", "repeated", "torn", "ending", "exit_code"))
        return {"pipeline": now["name"], **same, "problems": status["problems"],
                "stages": [{"name": name, "restarts": n} for name, n in restarts.items()], **only_at_the_end}

    def stop(self, timeout_s=30.0):
        """Stops the run in the same way as Ctrl-C, after finishing every frame that was begun, and returns
        its exit code; None: it still runs."""
        if self._process.poll() is None:
            if self._ignores_interrupt:
                try:
                    self._run_command("down", "-p", self.name, "--timeout", f"{timeout_s:g}")
                except Error:   # not reachable yet, or not any more
                    pass
            else:
                self._process.send_signal(signal.SIGINT)
            if self.wait(0.0 if self._ignores_interrupt else timeout_s) is None:
                self._process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def _end(self):
        if os.getpid() != self._owner:
            return
        if self._process.poll() is None:
            self.stop(10.0)
        if self._process.poll() is None:
            self._process.kill()
        atexit.unregister(self._end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def __repr__(self):
        return f"<carousel.Running \"{self.name}\": {self.state()}>"
