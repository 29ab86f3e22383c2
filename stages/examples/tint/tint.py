"""A stage in Python: a picture in, a picture out. In a pipeline file: run = "tint.py"."""
from typing import Annotated

import carousel
import numpy


@carousel.stage(output=carousel.like(0), device="cpu")
def tint(color, out, *, warmth: Annotated[float, carousel.between(0, 1)] = 0.3):
    """Reddens: warmth 0 leaves the picture as it is."""
    into = numpy.asarray(out)   # the output's memory, no copy: what is written here is the frame
    numpy.copyto(into, numpy.asarray(color))
    into[..., 2] = (into[..., 2] * (1 - warmth)).astype("u1")
