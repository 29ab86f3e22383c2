"""Reads every frame of a run exactly once, in your own program: count.py RUN PORT"""
import sys

import carousel
import numpy

run, port = sys.argv[1:3]
seen = 0
for frame in carousel.open(run).reader(port):   # ends with the run
    mean = numpy.asarray(frame["color"]).mean()   # no array may be kept after commit()
    print(f"frame {frame.frame_number}: mean {mean:.1f}, exposure {frame.metadata.get('exposure_ms', 0)} ms")
    frame.commit()
    seen += 1
print(seen, "frames")
