"""A source that ends, in Python."""
import carousel
import numpy


@carousel.stage(output=carousel.image(), ends=True)
def counted(frame, out, *, count: int = 5):
    if frame.frame_number >= count:
        return frame.end_stream()
    numpy.asarray(out)[:] = frame.frame_number
