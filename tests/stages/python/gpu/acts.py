"""A stage that copies a picture with the arrays of one library, and at one frame does what its settings request, for python_gpu.py.

The frames up to `calm` are only copied: the library initialises in them."""
from typing import Literal

import carousel

LIBRARIES = Literal["torch", "cupy", "numpy"]
ACTS = Literal["copy", "copy_from", "pointers", "named", "silent", "eager", "input", "keep", "host"]
kept = []


class Torch:
    def __init__(self):
        import torch
        self.torch, self.own = torch, None
        self.of, self.pointer = torch.from_dlpack, lambda x: x.data_ptr()

    def copy(self, to, x):
        to.copy_(x)

    def clone(self, x):
        return x.clone()

    def current(self):
        return self.torch.cuda.current_stream().cuda_stream

    def late(self):
        self.own = self.own or self.torch.cuda.Stream()
        return self.torch.cuda.stream(self.own)

    def rest(self):
        self.torch.cuda._sleep(200000)

    def on_host(self, shape):
        return self.torch.zeros(shape, dtype=self.torch.uint8)

    def add(self, x):
        x.add_(1)


class Cupy:
    def __init__(self):
        import cupy
        self.cupy, self.own = cupy, None
        self.of, self.pointer = cupy.from_dlpack, lambda x: x.data.ptr
        self.nap = cupy.RawKernel(r'extern "C" __global__ void nap() { for (long long t = clock64(); clock64() - t < 200000;); }', "nap")

    def copy(self, to, x):
        self.cupy.copyto(to, x)

    def clone(self, x):
        return x.copy()

    def current(self):
        return self.cupy.cuda.get_current_stream().ptr

    def late(self):
        self.own = self.own or self.cupy.cuda.Stream(non_blocking=True)
        return self.own

    def rest(self):
        self.nap((1,), (1,), ())

    def on_host(self, shape):
        import numpy
        return numpy.zeros(shape, "u1")

    def add(self, x):
        x += 1


class Numpy:
    """On the CPU: there are no streams."""

    def __init__(self):
        import contextlib
        import numpy
        self.numpy, self.late = numpy, contextlib.nullcontext
        self.of, self.pointer = numpy.asarray, lambda x: x.ctypes.data

    def copy(self, to, x):
        self.numpy.copyto(to, x)

    def clone(self, x):
        return x.copy()

    def add(self, x):
        x += 1


@carousel.stage(output=carousel.like(0))
class acts:
    def __init__(self, *, library: LIBRARIES = "torch", act: ACTS = "copy", at: int = -1):
        self.of, self.act, self.at = {"torch": Torch, "cupy": Cupy, "numpy": Numpy}[library](), act, at

    def slot(self, plane):
        """The plane's address, obtained without DLPack."""
        if plane.device == "cpu":
            import ctypes
            return ctypes.addressof(ctypes.c_char.from_buffer(plane)) if not plane.readonly else None
        return plane.__cuda_array_interface__["data"][0]

    def check_pointers(self, frame, color, out):
        for plane in (color, out):
            slot, array = self.slot(plane), self.of.of(plane)
            assert slot is None or self.of.pointer(array) == slot, (plane.name, hex(slot), hex(self.of.pointer(array)))
            assert tuple(array.shape) == plane.shape
            del array
        if frame.stream is not None:
            assert self.of.current() == frame.stream, "the library's current stream is not the frame's"

    def process(self, frame, color, out):
        if self.act == "copy_from":    # of a plane, of an array of one, and of one that is released before the copy is done
            kind = frame.frame_number % 3
            out.copy_from(color if kind == 0 else self.of.of(color) if kind == 1 else self.of.clone(self.of.of(color)))
            return
        if self.act == "named":        # the arrays are made while the own stream is current, which passes it
            with self.of.late():
                self.of.rest()
                self.of.copy(self.of.of(out), self.of.of(color))
            return
        x, y = self.of.of(color), self.of.of(out)
        if self.act in ("silent", "eager"):   # the stream is not passed
            with self.of.late():
                if self.act == "silent":
                    self.of.rest()
                self.of.copy(y, x)
            return
        self.of.copy(y, x)
        if self.act == "pointers":
            self.check_pointers(frame, color, out)
        if frame.frame_number != self.at:
            return
        if self.act == "input":
            self.of.add(x)
        elif self.act == "keep":
            kept.append(y)
        elif self.act == "host":
            out.copy_from(self.of.on_host(out.shape))
