// carousel._carousel: what of the package is C++.
#include <carousel/port.hpp>

#include "core/errors.hpp"
#include "stages/python/frame.hpp"
#include "stages/python/plane.hpp"
#include "stages/python/port.hpp"
#include "stages/python/python_stage.hpp"

PYBIND11_MODULE(_carousel, m) {
    namespace py = pybind11;
    using namespace carousel;
    // The one that is registered last is asked first.
    const py::object base = py::register_exception<error>(m, "Error", PyExc_RuntimeError);
    py::register_exception<config_error>(m, "ConfigError", base);
    py::register_exception<nothing_new>(m, "NothingNew", base);
    py::register_exception<port_revoked>(m, "PortRevoked", base);
    py::register_exception<python::frame_ended>(m, "FrameEnded", PyExc_RuntimeError);
    python::bind_plane(m);
    python::bind_frame(m);
    python::bind_stage(m);
    python::bind_port(m);
    m.attr("with_cuda") = device::built_with_cuda();
}
