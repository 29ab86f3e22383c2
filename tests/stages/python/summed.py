"""A sink in Python: its hashes are the run's."""
import zlib

import carousel
import numpy


@carousel.stage
class summed:
    def process(self, frame, color):
        pass

    def finish(self, frame):
        frame.set_hash(zlib.crc32(numpy.asarray(frame["color"])), "crc32")
