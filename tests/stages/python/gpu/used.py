"""An output that each frame uses in part: the first `frame.frame_number % 65` rows of a list, with the arrays of one library."""
from typing import Literal

import carousel


@carousel.stage(output={"color": "u8[16]", "list": "f32[64, 4]"})
class used:
    def __init__(self, *, library: Literal["torch", "cupy", "numpy"] = "torch"):
        import importlib
        self.of = importlib.import_module(library)
        self.array = self.of.asarray if library == "numpy" else self.of.from_dlpack

    def process(self, frame, color, out_color, out_list):
        rows = frame.frame_number % 65
        self.array(out_color)[...] = 0
        out_list.set_used(rows)
        if rows > 0:
            self.array(out_list)[:rows] = float(frame.frame_number)
