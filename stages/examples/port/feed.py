"""The source of a run, as your own program: feed.py RUN PORT [FRAMES]"""
import sys
import time

import carousel
import numpy

run, port = sys.argv[1:3]
frames = int(sys.argv[3]) if len(sys.argv) > 3 else 100

with carousel.open(run).writer(port) as camera:
    for frame in camera:
        if frame.frame_number == frames:
            camera.end()
            break
        with frame:   # the block commits the frame at its end
            color = frame["out_color"]
            color.copy_from(numpy.full(color.shape, frame.frame_number % 256, dtype="u1"))
            frame.metadata["exposure_ms"] = 3.5
            frame.capture_ns = time.monotonic_ns()
