"""What goes wrong in a stage's Python, in one sentence and with its traceback."""
import os
import sys
import traceback

from ._carousel import ConfigError


class SettingsError(Exception):
    """A wrong key or value of the pipeline file: (key, message). The supervisor adds its line."""


OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _place(trace):
    """"invert.py, line 7: " of the innermost line that isn't of this package; "" when there is none."""
    steps = [s for s in traceback.extract_tb(trace) if not s.filename.startswith(("<", OWN_FOLDER))
             and os.path.basename(s.filename) != "carousel_stage.py"]
    return f"{os.path.basename(steps[-1].filename)}, line {steps[-1].lineno}: " if steps else ""


def words_of(kind, value, trace):
    """(one sentence, the traceback's text) of an exception."""
    text = "".join(traceback.format_exception(kind, value, trace)).rstrip()
    if issubclass(kind, (ConfigError, SettingsError)):
        return str(value.args[-1] if value.args else value), text
    if issubclass(kind, SystemExit):
        return (f"{_place(trace)}sys.exit({value.code!r}) was called: a stage doesn't end its process; raise an exception, or "
                "frame.end_stream() in a source", text)
    if issubclass(kind, SyntaxError):
        return f"{os.path.basename(value.filename or '?')}, line {value.lineno}: {kind.__name__}: {value.msg}", text
    message = " ".join(str(value).split())
    if issubclass(kind, ModuleNotFoundError):
        message += f" for {sys.executable}; CAROUSEL_PYTHON names another interpreter"
    return f"{_place(trace)}{kind.__name__}{': ' if message else ''}{message}", text
