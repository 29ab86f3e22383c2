"""A stage in Python: reads a picture, writes a picture. In a pipeline file: run = "tint.py"."""
from typing import Annotated

import carousel
import numpy


@carousel.stage(output=carousel.like(0), device="cpu")
def tint(color, out, *, warmth: Annotated[float, carousel.between(0, 1)] = 0.3):
    """Reduces blue: a warmth of 0 leaves the picture unchanged."""
    into = numpy.asarray(out)   # the output's memory, not a copy: all data that is written here is in the
                                # frame
    numpy.copyto(into, numpy.asarray(color))
    into[..., 2] = (into[..., 2] * (1 - warmth)).astype("u1")
