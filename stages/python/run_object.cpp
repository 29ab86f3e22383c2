#include "stages/python/run_object.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <utility>

#include "stages/python/gil.hpp"
#include "stages/python/module.hpp"

namespace carousel::python {
namespace py = pybind11;

const open_run& run_object::there() const {
    if (!run_)
        throw std::runtime_error(
            fmt::format("run \"{}\" is closed; carousel.open(\"{}\") opens it again", name_, name_));
    return *run_;
}

std::string run_object::describe() const {
    if (!run_) return fmt::format("<carousel.Run \"{}\", closed>", name_);
    return fmt::format("<carousel.Run \"{}\": {}>", name_, fmt::join(run_->stages(), ", "));
}

py::object run_object::remember(py::object port) {
    opened_.erase(
        std::remove_if(opened_.begin(), opened_.end(), [](const py::weakref& of) { return of().is_none(); }),
        opened_.end());
    opened_.emplace_back(port);
    return port;
}

void run_object::close() {
    std::optional<py::error_already_set> failed;
    for (const py::weakref& of : std::exchange(opened_, {})) try {
            if (const py::object port = of(); !port.is_none()) port.attr("close")();
        } catch (const py::error_already_set& e) {
            opened_.push_back(of);
            if (!failed) failed.emplace(e);
        }
    if (failed) throw *failed;
    parameters_->close();
    const std::optional<open_run> gone = std::exchange(run_, std::nullopt);
}

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
        "are), \"cpu\" or \"cuda:0\". Waits up to wait_s seconds for the run to start. An open run and its "
        "ports belong to one thread at a time. Raises ConfigError if there is no such run.");
}

}  // namespace carousel::python
