#pragma once
// The newest frames of a run, for Python: run.latest(stage). A delivered frame is valid as long as the frame,
// one of its planes or an array of it is referenced, even after the port is closed, because the port uses
// another block of memory for the next frame.

#include <pybind11/pybind11.h>

#include "stages/python/run_object.hpp"

namespace carousel::python {

/// Adds latest() to Run, and its class.
void bind_latest(pybind11::module_& m, pybind11::class_<run_object>& run);

}  // namespace carousel::python
