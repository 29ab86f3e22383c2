#pragma once
// Ports that take part in a run, for Python: run.reader(name), run.writer(name).
//
// A frame's planes are the ring's own memory until its commit. So who has an array of one can't commit: that
// is refused with the array's plane named, and the frame stays in hand. An array of a dropped frame keeps the
// next one, and the stream's end, from its writer. An array that outlives its port keeps
// the port's memory, and its place in the run, until it is let go.
// A port belongs to one thread at a time, which is said where it is not so, and to the process that opened
// it: a forked child leaves it alone, also when it ends.

#include <pybind11/pybind11.h>

#include "stages/python/run_object.hpp"

namespace carousel::python {

/// Of a call of Python that waits, before Ctrl-C is looked at.
inline constexpr f64 longest_wait_s = 0.1;

/// Adds reader() and writer() to Run, and their classes.
void bind_port_frames(pybind11::module_& m, pybind11::class_<run_object>& run);

}  // namespace carousel::python
