"""A source with a plane of each element type, through NumPy; a failed check ends it. test_python.py reads its output."""
import carousel
import numpy

# Carousel's word -> NumPy's type, the struct module's letter, the bytes of an element
TYPES = {"u8": ("u1", "B", 1), "u16": ("u2", "H", 2), "u32": ("u4", "I", 4), "u64": ("u8", "Q", 8),
         "i8": ("i1", "b", 1), "i16": ("i2", "h", 2), "i32": ("i4", "i", 4), "i64": ("i8", "q", 8),
         "f16": ("f2", "e", 2), "f32": ("f4", "f", 4), "f64": ("f8", "d", 8), "bool": ("?", "?", 1)}
WITHOUT_NUMPY = {"bf16": 2, "f8_e4m3": 1, "f8_e5m2": 1}   # NumPy has none of these
WIDEST = {"f16": 65504.0, "f32": (2 - 2**-23) * 2.0**127, "f64": (2 - 2**-52) * 2.0**1023}


def values(word, frame_number):
    """Six numbers that identify the type: its limits, and values that only a signed or a floating-point type has."""
    if word == "bool":
        return [True, False, frame_number % 2 == 0, True, True, False]
    if word in WIDEST:
        return [WIDEST[word], -WIDEST[word], -0.5, float("-inf"), 0.25, float(frame_number % 2048)]
    bits, signed = 8 * TYPES[word][2], word.startswith("i")
    return [2**(bits - signed) - 1, -2**(bits - 1) if signed else 0, frame_number % 128, 1, 2, 3]


def refused(call):
    try:
        call()
    except BufferError as why:
        return str(why)
    raise AssertionError("not refused")


@carousel.stage(output={f"p_{word}": f"{word}[3, 2]" for word in [*TYPES, *WITHOUT_NUMPY]})
def elements(frame):
    for word, (kind, letter, size) in TYPES.items():
        plane = frame.output[f"p_{word}"]
        into, content = numpy.asarray(plane), numpy.array(values(word, frame.frame_number), kind).reshape(3, 2)
        assert (plane.dtype, into.dtype, into.itemsize) == (word, numpy.dtype(kind), size), (word, into.dtype)
        assert memoryview(plane).format == letter, word
        if word != "bool":   # NumPy does not accept bool through DLPack before 1.25
            assert numpy.from_dlpack(plane).dtype == numpy.dtype(kind), word
        if frame.frame_number % 2 == 0:
            into[:] = content
        else:
            plane.copy_from(content)
    for word, size in WITHOUT_NUMPY.items():
        plane = frame.output[f"p_{word}"]
        assert (plane.dtype, plane.nbytes) == (word, 6 * size), plane
        message = refused(lambda plane=plane: numpy.asarray(plane))
        instead = "torch.from_dlpack(plane)" if size > 1 else "plane.bytes has the same memory as u8"
        assert message == f'plane "p_{word}": Python\'s buffers have no {word}; {instead}', message
        into = numpy.asarray(plane.bytes)
        assert into.shape == ((3, 2) if size == 1 else (3, 2, size)) and into.flags.writeable and plane.bytes.dtype == "u8", plane.bytes
        assert numpy.from_dlpack(plane.bytes).ctypes.data == into.ctypes.data and plane.bytes.nbytes == plane.nbytes
        into[:] = (frame.frame_number + numpy.arange(6 * size)).reshape(into.shape) % 256
    for word in ("f8_e4m3", "f8_e5m2"):
        message = refused(frame.output[f"p_{word}"].__dlpack__)
        assert message == (f'plane "p_{word}" of {word}: DLPack has it from version 1.1 on, which the consumer does not request; '
                           "plane.bytes has the same memory as u8"), message
        assert "dltensor_versioned" in repr(frame.output[f"p_{word}"].__dlpack__(max_version=(1, 1)))
    assert "dltensor" in repr(frame.output["p_bf16"].__dlpack__())
    # Elements of the same size and another type: complex numbers, the other byte order, texts.
    for word, kind in (("f64", "c8"), ("f32", ">f4"), ("u16", ">u2"), ("i16", "S2"), ("u8", "S1")):
        try:
            frame.output[f"p_{word}"].copy_from(numpy.zeros((3, 2), kind))
            raise AssertionError(f"{kind} not refused")
        except (TypeError, ValueError) as why:
            assert f"has elements of {word}, but the array has elements of another type" in str(why), why
    try:
        frame.output["p_i8"].copy_from(numpy.zeros((3, 2), "u1"))
        raise AssertionError("not refused")
    except (TypeError, ValueError) as why:
        assert "i8" in str(why) and "u8" in str(why), why
