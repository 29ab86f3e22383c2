#pragma once
// <carousel/port.hpp> for Python: carousel.open(name).latest(stage). A frame that is delivered is the
// program's for as long as it, a plane or an array of it is held: the port takes another block of memory for
// the next one.

#include <pybind11/pybind11.h>

namespace carousel::python {

void bind_port(pybind11::module_& m);

}  // namespace carousel::python
