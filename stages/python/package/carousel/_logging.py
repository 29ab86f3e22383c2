"""Python's logging in the process of a stage: each record becomes one or more lines of the run's log, with the record's level."""
import logging
import os

# These prefixes are the ones that shared/core/log.hpp puts before a line; the run's log has no level above error.
PREFIXES = ((logging.ERROR, "error: "), (logging.WARNING, "warning: "), (logging.INFO, ""), (0, "debug: "))
LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR}   # of CAROUSEL_LOG


class _Handler(logging.Handler):
    def emit(self, record):
        try:
            prefix = next(text for level, text in PREFIXES if record.levelno >= level)
            text = f"{prefix}{record.name}: {self.format(record)}".replace("\n", "\n    ")   # an indented line continues its record
            os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))   # one write, so that no lines of other threads are mixed in
        except Exception:
            self.handleError(record)


def use():
    """Sends the records of all loggers to the run's log, from the level of CAROUSEL_LOG on (default: info)."""
    root = logging.getLogger()
    root.addHandler(_Handler())
    root.setLevel(LEVELS.get(os.environ.get("CAROUSEL_LOG", ""), logging.INFO))
