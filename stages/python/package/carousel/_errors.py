"""Errors in a stage's Python code: one sentence and the traceback."""
import os
import sys
import traceback

from ._carousel import ConfigError


class SettingsError(Exception):
    """A wrong key or value of the pipeline file: (key, message). The supervisor adds its line number."""


LONGEST_SENTENCE, LONGEST_LINE, LONGEST_TRACEBACK = 1000, 1000, 20000   # characters
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _place(trace):
    """Returns "invert.py, line 7: " for the innermost line outside this package; "" if there is no such line."""
    steps = [s for s in traceback.extract_tb(trace) if not s.filename.startswith(("<", OWN_FOLDER))
             and os.path.basename(s.filename) != "carousel_stage.py"]
    return f"{os.path.basename(steps[-1].filename)}, line {steps[-1].lineno}: " if steps else ""


def key_of(failure):
    """Returns the key of a SettingsError; "" if the error has none."""
    key = failure.args[0] if len(failure.args) > 1 else ""
    return key if isinstance(key, str) and key.isascii() else ""


def _truncate(text, most):
    """Returns the text, or its beginning and end if it is longer than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... ({len(text)} characters) ... {text[-half:]}"


def _text(value):
    """Returns an exception's own text, or the reason why the text is not available."""
    try:
        return str(value)
    except Exception as failure:
        return f"its text is not available: __str__ raises {type(failure).__name__}"


def words_of(kind, value, trace):
    """Returns (one sentence, the traceback's text) for an exception: valid UTF-8, truncated for the log."""
    sentence, text = _describe(kind, value, trace)
    text = _truncate("\n".join(_truncate(line, LONGEST_LINE) for line in text.splitlines()), LONGEST_TRACEBACK)
    return tuple(words.encode("utf-8", "backslashreplace").decode() for words in (_truncate(sentence, LONGEST_SENTENCE), text))


def _describe(kind, value, trace):
    text = "".join(traceback.format_exception(kind, value, trace)).rstrip()
    if issubclass(kind, (ConfigError, SettingsError)):
        return _text(value.args[-1] if value.args else value), text
    if issubclass(kind, SystemExit):
        return (f"{_place(trace)}sys.exit({value.code!r}) was called: a stage must not end its process; raise an exception, or "
                "frame.end_stream() in a source", text)
    if issubclass(kind, SyntaxError):
        return f"{os.path.basename(value.filename or '?')}, line {value.lineno}: {kind.__name__}: {value.msg}", text
    message = " ".join(_text(value).split())
    if issubclass(kind, ModuleNotFoundError):
        message += f" for {sys.executable}; the stage's key python, or CAROUSEL_PYTHON, names another interpreter"
    return f"{_place(trace)}{kind.__name__}{': ' if message else ''}{message}", text
