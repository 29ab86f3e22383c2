"""Two outputs with the arrays of one library: the picture unchanged, and one with each byte inverted."""
from typing import Literal

import carousel


@carousel.stage(outputs={"same": carousel.like(0), "turned": carousel.like(0)})
class two:
    def __init__(self, *, library: Literal["torch", "cupy", "numpy"] = "torch"):
        import importlib
        self.of = importlib.import_module(library)
        self.array = self.of.asarray if library == "numpy" else self.of.from_dlpack

    def process(self, color, out_same, out_turned):
        x, same, turned = self.array(color), self.array(out_same), self.array(out_turned)
        same[...] = x
        turned[...] = 255 - x
