"""A torch stage that computes on its own stream, and late: downstream stages must still see all of it.

way = "named": the arrays are made while the own stream is current, which passes it in __dlpack__(stream=).
way = "silent": they are made before, and the stream is not passed. way = "cupy": CuPy's non-blocking stream, silent.
"""
from typing import Literal

import carousel
import torch


@carousel.stage(output=carousel.like(0), device="cuda")
class own_stream:
    def __init__(self, *, way: Literal["named", "silent", "cupy"] = "named", delay: int = 200000):
        self.way, self.delay, self.torch_stream, self.cupy_stream = way, delay, torch.cuda.Stream(), None
        if way == "cupy":
            import cupy
            self.cupy, self.cupy_stream = cupy, cupy.cuda.Stream(non_blocking=True)

    def process(self, color, out):
        if self.way == "named":
            with torch.cuda.stream(self.torch_stream):
                torch.cuda._sleep(self.delay)
                torch.from_dlpack(out).copy_(torch.from_dlpack(color))
        elif self.way == "silent":
            x, y = torch.from_dlpack(color), torch.from_dlpack(out)
            with torch.cuda.stream(self.torch_stream):
                torch.cuda._sleep(self.delay)
                y.copy_(x)
        else:
            x, y = self.cupy.from_dlpack(color), self.cupy.from_dlpack(out)
            with torch.cuda.stream(torch.cuda.ExternalStream(self.cupy_stream.ptr)):
                torch.cuda._sleep(self.delay)
            with self.cupy_stream:
                self.cupy.copyto(y, x)
