#pragma once
// A run that is open, and the ports that Python has opened of it. They live without it; its end, or that of
// `with`, closes those that are still there, so that their places are free at once. Used under the GIL alone.

#include <pybind11/pybind11.h>

#include <carousel/port.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stages/python/run_parameters.hpp"

namespace carousel::python {

class run_object {
public:
    explicit run_object(open_run run)
        : name_(run.name()), parameters_(std::make_shared<run_parameters>(run)), run_(std::move(run)) {}

    /// Throws where it is closed.
    [[nodiscard]] const open_run& there() const;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::shared_ptr<run_parameters>& parameters() const noexcept { return parameters_; }
    [[nodiscard]] std::string describe() const;
    /// `port` as it is handed out: close() knows of it, and does not keep it.
    template <typename Object>
    [[nodiscard]] pybind11::object opened(Object port) {
        return remember(pybind11::cast(std::move(port)));
    }
    /// Closes its ports; one that can't be, since another thread is in it, is told behind the others.
    void close();

private:
    [[nodiscard]] pybind11::object remember(pybind11::object port);

    std::string name_;
    std::shared_ptr<run_parameters> parameters_;
    std::optional<open_run> run_;  ///< nothing: it is closed
    std::vector<pybind11::weakref> opened_;
};

}  // namespace carousel::python
