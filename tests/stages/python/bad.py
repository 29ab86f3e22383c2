"""Errors that a stage may make, each at its own frame: WRONG[frame]."""
import ctypes
import os
import sys

import carousel
import numpy

WRONG = {10 * (k + 1): how for k, how in enumerate((
    "raises", "returns", "keeps", "writes in place", "writes past the array", "forks", "exits", "hangs", "holds the GIL",
    "another type", "another shape", "another stride", "no array", "in an input", "uses an old plane", "another device",
    "no text", "broken text", "long text", "negative extent", "broken value", "huge value", "numbered key", "negative time"))}
kept = []


class NoText(Exception):
    """An exception whose text can't be read."""

    def __str__(self):
        raise RuntimeError("no text")


class Elsewhere:
    """An array that reports a GPU as its device."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


@carousel.stage(output=carousel.like(0))
def bad(frame, color, out):
    x, y = numpy.asarray(color), numpy.asarray(out)
    y[:] = x
    if frame.frame_number == 2:
        kept.append(color)   # a plane, not an array: it ends with its frame, and is harmless
    how = WRONG.get(frame.frame_number)
    if how == "raises":
        raise ValueError("as told")
    if how == "returns":
        return y
    if how == "keeps":
        kept.append(y)
    if how == "writes in place":
        x += 1
    if how == "writes past the array":
        ctypes.memset(x.ctypes.data, 0, 4)
    if how == "forks":
        os.fork()
    if how == "exits":
        sys.exit(3)
    if how == "hangs":
        while True:
            pass
    if how == "holds the GIL":
        ctypes.PyDLL(None).sleep(1000)
    if how == "another type":
        out.copy_from(x.astype("f4"))
    if how == "another shape":
        out.copy_from(x[:3])
    if how == "another stride":
        out.copy_from(numpy.asfortranarray(x))
    if how == "another device":
        out.copy_from(Elsewhere(x.copy()))
    if how == "no text":
        raise NoText
    if how == "broken text":
        raise ValueError("half \udc80 a letter")
    if how == "long text":
        raise ValueError("x" * 200000)
    if how == "negative extent":
        out.set_used(-1)
    if how == "broken value":
        frame.metadata["k"] = "\udc80"
    if how == "huge value":
        frame.metadata["k"] = -2**63 - 1
    if how == "numbered key":
        frame.metadata[5] = 1
    if how == "negative time":
        frame.capture_ns = -1
    if how == "no array":
        out.copy_from("a picture")
    if how == "in an input":
        color.copy_from(y)
    if how == "uses an old plane":
        kept.append(color)
    if kept and frame.frame_number > 150:
        numpy.asarray(kept[-1])
    return None
