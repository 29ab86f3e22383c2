#pragma once
// The Python counterparts of <carousel/port.hpp>: a run, its newest frames, and ports that take part in the
// run.

#include <pybind11/pybind11.h>

#include "stages/python/run_object.hpp"

namespace carousel::python {

// carousel.open(name), which returns a Run.

void bind_port(pybind11::module_& m);

// The newest frames of a run, for Python: run.latest(stage). A delivered frame is valid as long as the frame,
// one of its planes or an array of it is referenced, even after the port is closed, because the port uses
// another block of memory for the next frame.

/// Adds latest() to Run, and its class.
void bind_latest(pybind11::module_& m, pybind11::class_<run_object>& run);

// Ports that take part in a run, for Python: run.reader(name), run.writer(name).
// Until a frame is committed, its planes are the ring's own memory. So a program that still holds an array of
// such a plane cannot commit: commit() raises an error with the plane's name, and the frame stays
// uncommitted. An array of a dropped frame prevents the writer from taking its next frame and from ending the
// stream. An array that outlives its port keeps the port's memory, and its seat in the run, until it is
// released. A port belongs to one thread at a time (a violation is reported), and to the process that opened
// it: a forked child does not touch the port, even when it exits.

/// Longest uninterrupted wait of a Python call; after this time it checks for Ctrl-C.
inline constexpr f64 longest_wait_s = 0.1;

/// Adds reader() and writer() to Run, and their classes.
void bind_port_frames(pybind11::module_& m, pybind11::class_<run_object>& run);

}  // namespace carousel::python
