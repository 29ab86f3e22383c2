"""A sink in Python that accepts any frame, and keeps it for the time in its settings."""
import time

import carousel


@carousel.stage
def eater(frame, *, pause_s: float = 0.0):
    time.sleep(pause_s)
