"""A stage in Python that looks aside: the newest frame of another ring is whole, and never older than before."""
import carousel
import numpy


@carousel.stage(output=carousel.like(0))
class aside:
    def __init__(self):
        self.last = -1

    def process(self, frame, color, out):
        side = frame.latest("beside")
        assert side is frame.latest("beside")
        if side is not None:
            picture = numpy.asarray(side["color"])
            assert (picture == (side.frame_number * 7 + 1) % 256).all() and not picture.flags.writeable
            assert side.frame_number >= self.last and side.born_ns > 0
            self.last = side.frame_number
        out.copy_from(color)
