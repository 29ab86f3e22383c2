// carousel._carousel: the C++ part of the package.
#include <carousel/port.hpp>

#include "core/errors.hpp"
#include "stages/python/dlpack.hpp"
#include "stages/python/frame.hpp"
#include "stages/python/module.hpp"
#include "stages/python/plane.hpp"
#include "stages/python/python_stage.hpp"

PYBIND11_MODULE(_carousel, m) {
    namespace py = pybind11;
    using namespace carousel;
    // Exception translators registered later are tried first.
    const py::object base = py::register_exception<error>(m, "Error", PyExc_RuntimeError);
    base.doc() = "An error in Carousel, in one sentence.";
    py::register_exception<config_error>(m, "ConfigError", base).doc() =
        "A request is invalid: a file, a setting, a run, a port, a plane.";
    py::register_exception<nothing_new>(m, "NothingNew", base).doc() =
        "A loop got no frame for patience_s; the text names what the pipeline waits for.";
    py::register_exception<port_revoked>(m, "PortRevoked", base).doc() =
        "A frame was kept for too long: the port now belongs to another program, and the frame was not "
        "committed.";
    py::register_exception<python::frame_ended>(m, "FrameEnded", PyExc_RuntimeError).doc() =
        "A frame or a plane was used after its end.";
    python::bind_dlpack(m);
    python::bind_plane(m);
    python::bind_frame(m);
    python::bind_stage(m);
    python::bind_port(m);
    m.attr("__version__") = CAROUSEL_VERSION;
    m.attr("with_cuda") = device::built_with_cuda();
}
