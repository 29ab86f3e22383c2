"""A sink in Python: the mean colour of each picture, as a CSV file. In a pipeline file: run = "tally.py"."""
import os
import zlib

import carousel
import numpy


@carousel.stage(device="cpu")
class tally:
    def prepare(self, env):
        # runs/NAME-DATE, which no run removes; the runtime directory is removed at the end of the run.
        path = os.path.join(env["output_directory"], "tally.csv")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)

    def process(self, frame, color):
        """Data of this frame that finish() needs goes into frame.local. An attribute of self could belong to
        another frame by then, because process() of
        later frames runs before finish() of this one."""
        frame.local.mean = numpy.asarray(color)[..., :3].mean(axis=(0, 1))

    def finish(self, frame):
        """After a crash finish() may be called again for the same frame, in another process: each frame has
        its own offset in the file."""
        red, green, blue = frame.local.mean
        line = f"{frame.frame_number:8d},{red:9.4f},{green:9.4f},{blue:9.4f}\n".encode()
        os.pwrite(self.file, line, frame.frame_number * len(line))
        frame.set_hash(zlib.crc32(line), "tally")
