"""A sink that requests tombstones, and fails on them if its settings ask for it."""
import logging

import carousel


@carousel.stage(wants_tombstones=True)
class tombstones:
    def __init__(self, *, refuses: bool = False):
        self.refuses = refuses

    def process(self, frame):
        pass

    def finish(self, frame):
        if not frame.tombstone_reason:
            return
        if self.refuses:
            raise ValueError("refuses a tombstone")
        logging.warning("frame %d is a tombstone: %s; %s", frame.frame_number, frame.tombstone_reason, vars(frame.local))
