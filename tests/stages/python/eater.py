"""A sink in Python that takes any frame, and keeps it for as long as it is told."""
import time

import carousel


@carousel.stage
def eater(frame, *, pause_s: float = 0.0):
    time.sleep(pause_s)
