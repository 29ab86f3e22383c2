"""What a stage sees of its frame within process(): a failed check ends the stage."""
import array
import ctypes
import os
import sys

import carousel
import numpy


def capsule_name(capsule):
    return repr(capsule).split('"')[1]


class Versioned(ctypes.Structure):
    """The head of DLPack's DLManagedTensorVersioned."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64)]


READ_ONLY = 1   # DLPACK_FLAG_BITMASK_READ_ONLY
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def is_read_only(plane):
    capsule = plane.__dlpack__(max_version=(1, 1))   # owns what it points to
    tensor = Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
    assert tensor.major == 1, tensor.major
    return bool(tensor.flags & READ_ONLY)


class Array:
    """An array that supports DLPack only."""

    def __init__(self, plane):
        self.plane = plane

    def __dlpack__(self, **words):
        return self.plane.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.plane.__dlpack_device__()


@carousel.stage(output=lambda config: {"picture": f"u8[{config.height}, {config.width}, 4]", "depth": "f32[4, 3]", "type": "views"})
class views:
    def __init__(self, *, count: int = 3):
        self.count, self.seen = count, 0

    def prepare(self, env):
        assert "output_directory" in env and os.path.isdir(env["output_directory"]) and env.get("nothing", 5) == 5
        assert env["device"] == "cpu" and env["in_flight"] >= 1 and env["instance"] == 0 and os.path.isdir(env["runtime_directory"]), env
        declared = carousel.Environment.__annotations__
        assert {key: type(value) for key, value in env.items()} == declared, (env, declared)
        self.ready = True

    def process(self, frame, color, out_picture, out_depth):
        assert self.ready and self.count == 7
        assert repr(color) == f'<carousel.Plane "color" u8[36, 64, 4] on cpu of frame {frame.frame_number}, read-only>', repr(color)
        assert color.shape == (36, 64, 4) and color.strides == (256, 4, 1) and color.dtype == "u8" and color.nbytes == 9216
        assert color.readonly and not out_picture.readonly and out_depth.dtype == "f32"
        x, y, d = numpy.asarray(color), numpy.asarray(out_picture), numpy.asarray(out_depth)
        assert x.dtype == numpy.uint8 and d.dtype == numpy.float32 and d.shape == (4, 3)
        assert not x.flags.writeable and y.flags.writeable
        assert (x == (frame.frame_number * 7 + 1) % 256).all(), "the source's number"
        # One memory, by every way of access.
        again = numpy.from_dlpack(color)
        assert again.ctypes.data == x.ctypes.data and memoryview(color).shape == (36, 64, 4)
        # Versions: with the read-only flag if it is requested.
        assert capsule_name(color.__dlpack__()) == "dltensor"
        assert capsule_name(color.__dlpack__(max_version=(1, 1))) == "dltensor_versioned"
        assert capsule_name(color.__dlpack__(max_version=(0, 8))) == "dltensor"
        assert is_read_only(color) and not is_read_only(out_picture) and not is_read_only(out_depth)
        assert color.__dlpack_device__() == (1, 0)
        for words in ({"dl_device": (2, 0)}, {"copy": True}):
            try:
                color.__dlpack__(**words)
                raise AssertionError("not refused")
            except BufferError as refused:
                assert "color" in str(refused)
        assert not hasattr(color, "__cuda_array_interface__")
        # Copies in.
        out_picture.copy_from(Array(color))
        assert (y == x).all()
        out_picture.copy_from(color)
        out_depth.copy_from(numpy.arange(12, dtype="f4").reshape(4, 3))
        assert d[3, 2] == 11
        try:
            out_depth.copy_from(array.array("f", range(12)))
            raise AssertionError("not refused")
        except ValueError as refused:
            assert str(refused) == 'plane "depth" is [4, 3], the array [12]', refused
        # What remains valid.
        kept = frame.copy()
        assert kept.parameters == {} and kept.frame_number == frame.frame_number and (numpy.asarray(kept["color"]) == x).all()
        assert numpy.asarray(kept["color"]).ctypes.data != x.ctypes.data
        self.kept = kept
        assert list(frame.output) == ["picture", "depth"] and list(frame.inputs[0]) == ["color"]
        assert frame.stream is None and frame.parameters == {} and frame.time_s >= 0 and frame.born_ns > 0
        try:
            frame["colour"]
            raise AssertionError("not refused")
        except KeyError as refused:
            assert "there are color" in str(refused)
        assert "torch" not in sys.modules and "cupy" not in sys.modules, "no framework is imported"
        self.seen += 1
