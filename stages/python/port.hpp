#pragma once
// <carousel/port.hpp> for Python: carousel.open(name), which returns a Run; its latest() is in latest.hpp,
// its reader() and writer() in port_frames.hpp.

#include <pybind11/pybind11.h>

namespace carousel::python {

void bind_port(pybind11::module_& m);

}  // namespace carousel::python
