#include "stages/python/port.hpp"

#include <pybind11/stl.h>

#include "stages/python/checked_cast.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/latest.hpp"
#include "stages/python/port_frames.hpp"
#include "stages/python/run_object.hpp"

namespace carousel::python {
namespace py = pybind11;

void bind_port(py::module_& m) {
    py::class_<run_object> run(m, "Run",
                               "An open run: with carousel.open(\"demo\") as run. The end of `with` closes "
                               "everything that was opened from it.");
    run.def_property_readonly(
           "stages", [](const run_object& r) { return r.there().stages(); },
           "The stages that have an output.")
        .def_property_readonly("name", &run_object::name, "The run's name.")
        .def("close", &run_object::close,
             "Closes everything that latest(), reader() and writer() have opened. Frames of latest() stay "
             "valid.")
        .def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [](run_object& r, const py::args&) { r.close(); })
        .def("__repr__", &run_object::describe);
    bind_latest(m, run);
    bind_port_frames(m, run);
    m.def(
        "open",
        [](const py::object& name, const py::object& device, f64 wait_s) {
            const auto which = checked_cast<std::string>(name, "open(name)", text_value);
            const auto where = checked_cast<std::string>(device, "open(device)", text_value);
            const gil_released others;
            return run_object(open(which, {.device = where, .wait_s = wait_s}));
        },
        py::arg("name"), py::kw_only(), py::arg("device") = "", py::arg("wait_s") = 5.0,
        "Opens the run of that name, of this user. device: where frames are delivered: \"\" (where they "
        "are), \"cpu\" or \"cuda:0\".");
}

}  // namespace carousel::python
