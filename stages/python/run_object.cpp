#include "stages/python/run_object.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "stages/python/gil.hpp"

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

}  // namespace carousel::python
