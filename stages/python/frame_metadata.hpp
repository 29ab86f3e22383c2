#pragma once
// A frame's metadata for Python: carousel/_metadata.py presents them as a dict.

#include <pybind11/pybind11.h>

#include <memory>

#include "stages/python/frame.hpp"

namespace carousel::python {

void bind_metadata(py::class_<frame_object, std::shared_ptr<frame_object>>& frame);

}  // namespace carousel::python
