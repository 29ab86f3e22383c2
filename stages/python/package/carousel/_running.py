"""A run that Python has started with the program `carousel`."""
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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
        raise Error(f"the program carousel is neither next to {here} nor in PATH: build it (./pipelines/launch) or add its folder to PATH")
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
    """Returns a parameter's value in the form that `carousel set` reads: a text is returned unchanged, every other value as JSON; NumPy
    values are converted to plain ones first."""
    return value if isinstance(value, str) else json.dumps(value, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))


# A sample of the Prometheus text format: a name with labels, and a value.
_SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)')


class Running:
    """A pipeline that this process has started: Pipeline.start() returns it. The run ends with end(), after its last frame, at the end of
    `with`, or when this process exits. If this process is killed (SIGKILL, a fault) the run continues; `carousel down` then ends it.

    A stage is named as in `carousel ps`: "fragment" means all its instances, "fragment.1" one of them. Each method that acts on a stage
    returns when the supervisor has carried the request out, and raises Error with its reason if it refuses. Any thread may call any
    method."""

    def __init__(self, name, words, wait_s, folder=None, explained=lambda text: text):
        self.name = name
        self._explained = explained   # if a text names a place in a file that the user has not written, replaces this place by the stage
                                      # and the key
        folder = folder or tempfile.mkdtemp(prefix="carousel-")
        self._owner = os.getpid()
        weakref.finalize(self, _remove, folder, self._owner)
        self._report, self.log = os.path.join(folder, "report.json"), os.path.join(folder, "log")
        self._ignores_interrupt = signal.getsignal(signal.SIGINT) is signal.SIG_IGN   # true in a background job of a script, which
                                                                                      # inherits this setting
        with open(self.log, "wb") as log:
            # Starts it in a separate session, so that Ctrl-C in a notebook interrupts the cell and not the
            # run.
            self._process = subprocess.Popen(words + ["--report", self._report], stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, start_new_session=True, env=_environment())
        atexit.register(self._end_at_exit)
        self._await_start(wait_s)

    def _await_start(self, wait_s):
        until = time.monotonic() + wait_s
        while self._process.poll() is None and not self._has_started():
            if time.monotonic() > until:
                text = self.log_text()
                self._end_at_exit()
                raise Error(f"{self.name} is not running after {wait_s:g} s: {text}")
            time.sleep(0.05)
        if self._process.poll() not in (None, 0) and not os.path.exists(self._report):
            refused = ConfigError if self._process.poll() == 2 else Error
            raise refused(f"{self.name} did not start (exit code {self._process.poll()}): {self.log_text()}")

    def _has_started(self):
        state = self.state()
        if state == "waiting":   # the run may wait for ports that no program uses yet; stages that do not depend on these ports may
                                 # already be done
            return {s["state"] for s in self.ps().get("stages", [{"state": "?"}])} <= {"running", "vacant", "done"}
        return state in ("running", "paused", "ending", "done")

    def _run_command(self, *words):
        done = subprocess.run([program(), *words], capture_output=True, text=True)
        if done.returncode != 0:
            text = done.stderr.strip() or done.stdout.strip()
            try:   # with --json, a refusal is printed as JSON, too
                text = json.loads(text)["message"]
            except (ValueError, LookupError, TypeError):
                pass
            raise Error(f"carousel {' '.join(words)}: {text}")
        return done.stdout

    def log_text(self, lines=15):
        """Returns the last lines of what the run has printed, as text. logs() returns the lines of stages one by one, with their levels."""
        with open(self.log, errors="replace") as text:
            return self._explained("\n".join(text.read().strip().splitlines()[-lines:]))

    def state(self):
        """Returns "starting", "running", "paused", "waiting", ..., or "done" when it is over."""
        if self._process.poll() is not None:
            return "done"
        try:
            status = self.ps()
            if "pipeline" in status:   # if the key is missing, only the run's shared memory exists: the run does not accept requests yet,
                                       # or no longer accepts them
                return status["pipeline"]["state"]
        except Error:   # not reachable yet, or not any more
            pass
        return "starting" if self._process.poll() is None else "done"

    def ps(self):
        """Returns the output of `carousel ps --json` for the run."""
        return json.loads(self._run_command("ps", "-p", self.name, "--json"))

    def _act(self, command, stage, *words):
        self._run_command(command, stage, "-p", self.name, *words)

    def kill(self, stage, sig="KILL"):
        """Sends a signal, by name or number, to a stage's process, which is then replaced according to its restart policy."""
        self._act("kill", stage, "-s", str(sig))

    def restart(self, stage):
        """Restarts a stage, with the program that is on disk now. No frame is lost. If the program can't be this stage, for example
        because its output has changed, the request is refused and the old process continues."""
        self._act("restart", stage)

    def pause(self, stage):
        """Pauses a stage: its process stops (SIGSTOP), and no timeout runs. The pipeline waits until resume(). If the process dies
        meanwhile, its successor is paused as well."""
        self._act("stop", stage)

    def resume(self, stage):
        """Continues a paused stage. Refused if it is not paused."""
        self._act("cont", stage)

    def down(self, stage):
        """Ends the processes of a stage until up(): the pipeline waits, and keeps every frame. end() ends the whole run."""
        self._act("down", stage)

    def up(self, stage):
        """Starts a stage that is down or has failed."""
        self._act("up", stage)

    def inject(self, stage, fault="hang"):
        """Makes a stage fail at its next frame, to test the pipeline: "hang" (found at frame_timeout_ms), "exit", "abort", "gpu-fault" and
        others; `carousel inject --help` lists them."""
        self._act("inject", stage, "--fault", fault)

    def logs(self, *stages, level="debug", lines=None):
        """Returns the run's log lines, oldest first, as dicts: time (UTC, "2026-01-31T12:00:00.000Z"), stage ("carousel": the supervisor),
        pid, level ("debug", "info", "warning", "error"), line (text without the stage's name). stages: if given, only the lines of these
        stages are returned. level: only lines of this level and above. lines: only the last N. The run keeps 4 to 8 MiB per stage and
        deletes them at its end, unless it was started with start(options=["--keep-logs"]). Raises Error if the logs were deleted."""
        words = ["--json", "--level", level, *([] if lines is None else ["-n", str(lines)])]
        return [json.loads(line) for line in self._run_command("logs", *stages, "-p", self.name, *words).splitlines()]

    def trace(self, file, *, seconds=None, frames=None):
        """Records every frame through every stage into a file for ui.perfetto.dev, and returns the file's path. Blocks until the
        recording ends: after `seconds` (default: 5 s if `frames` is not given), when `frames` frames have passed, or at the end of the run.
        If only `frames` is given, the call also waits while the pipeline is paused; `seconds` limits this wait."""
        limits = [word for key, value in (("--seconds", seconds), ("--frames", frames)) if value is not None for word in (key, str(value))]
        self._run_command("trace", os.path.abspath(file), "-p", self.name, *limits)
        return os.path.abspath(file)

    def metrics(self):
        """Returns the run's metrics as a dict {"NAME{LABELS}": value}. The names and units are those of GET /metrics, with which the web
        UI serves the metrics to Prometheus, e.g. 'carousel_run_frames_total'. Needs the program carousel-web, which is not part of a
        build without extras."""
        text = self._run_command("view", "--metrics", "-p", self.name)
        return {found[1]: float(found[2]) for found in map(_SAMPLE.fullmatch, text.splitlines()) if found}

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
        that are known only at the end are None during the run: lost, repeated, torn, ending, exit_code. ps() returns more about a run that
        is in progress. Raises Error if a run wrote no report."""
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
        except Error:   # the run does not accept requests yet, or no longer accepts them
            if self.wait(10.0) is None:
                raise
            return None
        if "pipeline" not in status:   # only the run's shared memory exists
            if self.wait(10.0) is None:
                raise Error(f"{self.name} does not accept requests: {self.log_text()}")
            return None
        restarts = {}   # a stage has one entry per instance
        for each in status["stages"]:
            restarts[each["name"]] = restarts.get(each["name"], 0) + (each["restarts"] or 0)
        now = status["pipeline"]
        same = {key: now[key] for key in ("file", "device", "frames", "restarts", "stalls", "damaged", "kills_at")}
        only_at_the_end = dict.fromkeys(("lost", "repeated", "torn", "ending", "exit_code"))
        return {"pipeline": now["name"], **same, "problems": status["problems"],
                "stages": [{"name": name, "restarts": n} for name, n in restarts.items()], **only_at_the_end}

    def end(self, timeout_s=30.0):
        """Ends the run in the same way as Ctrl-C and `carousel down`: the frames that have begun are finished first. If the run has not
        ended after timeout_s seconds, its stages are ended at once. Returns the exit code, or None if the run has not ended within
        timeout_s further seconds."""
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

    def _end_at_exit(self):
        if os.getpid() != self._owner:
            return
        if self._process.poll() is None:
            self.end(10.0)
        if self._process.poll() is None:
            self._process.kill()
        atexit.unregister(self._end_at_exit)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end_at_exit()

    def __repr__(self):
        return f"<carousel.Running \"{self.name}\": {self.state()}>"
