#pragma once
// An open run, and the ports of this run that Python has opened. The ports can outlive this object; the end
// of the object, or of its `with` block, closes the ports that still exist, so that their seats are free at
// once. Used only under the GIL.

#include <pybind11/pybind11.h>
#include <carousel/port.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "stages/python/gil.hpp"

namespace carousel::python {

// The schema of a run's parameters: their names and types, requested when Python first reads the values of
// one of its frames. Used under the GIL, which is released during the request.

class run_parameters {
public:
    explicit run_parameters(open_run of) : of_(std::move(of)) {}
    /// Constant for the lifetime of the run. Throws shm_error if the run's supervisor does not reply.
    [[nodiscard]] const ring::parameter_schema& schema() {
        if (!known_) {
            if (!of_)
                throw std::runtime_error(
                    "this frame's parameters are unknown, because its run was closed before the parameters "
                    "of any frame were read");
            const open_run of = *of_;
            ring::parameter_schema loaded = [&] {
                const gil_released others;
                return of.parameters();
            }();
            if (!known_)
                known_ = std::move(loaded);  // if the value is set already, another thread has
                                             // requested it in the meantime
        }
        return *known_;
    }
    /// If the run is closed, a frame that the program still holds does not keep the connection open.
    void close() { of_.reset(); }

private:
    std::optional<open_run> of_;  ///< nothing: it is closed
    std::optional<ring::parameter_schema> known_;
};

class run_object {
public:
    explicit run_object(open_run run)
        : name_(run.name()), parameters_(std::make_shared<run_parameters>(run)), run_(std::move(run)) {}

    /// Throws if the run is closed.
    [[nodiscard]] const open_run& there() const;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::shared_ptr<run_parameters>& parameters() const noexcept { return parameters_; }
    [[nodiscard]] std::string describe() const;
    /// Registers `port`, which is returned to Python, so that close() finds it; the registration does not
    /// keep the port alive.
    template <typename Object>
    [[nodiscard]] pybind11::object opened(Object port) {
        return remember(pybind11::cast(std::move(port)));
    }
    /// Closes the run's ports; if a port can't be closed because another thread is using it, an error is
    /// raised after the other ports are closed.
    void close();

private:
    [[nodiscard]] pybind11::object remember(pybind11::object port);

    std::string name_;
    std::shared_ptr<run_parameters> parameters_;
    std::optional<open_run> run_;  ///< nothing: it is closed
    std::vector<pybind11::weakref> opened_;
};

}  // namespace carousel::python
