#pragma once
// The schema of a run's parameters: their names and types, requested when Python first reads the values of
// one of its frames. Used under the GIL, which is released during the request.

#include <carousel/port.hpp>

#include <optional>
#include <stdexcept>
#include <utility>

#include "stages/python/gil.hpp"

namespace carousel::python {

class run_parameters {
public:
    explicit run_parameters(open_run of) : of_(std::move(of)) {}
    /// Constant for the lifetime of the run. Throws shm_error if the run's supervisor does not reply.
    [[nodiscard]] const ring::parameter_schema& schema() {
        if (!known_) {
            if (!of_)
                throw std::runtime_error(
                    "this frame's parameters are unknown: no frame's parameters were read before its run was "
                    "closed");
            const open_run of = *of_;
            ring::parameter_schema loaded = [&] {
                const gil_released others;
                return of.parameters();
            }();
            if (!known_) known_ = std::move(loaded);  // otherwise another thread was faster
        }
        return *known_;
    }
    /// A frame that is kept does not keep a closed run.
    void close() { of_.reset(); }

private:
    std::optional<open_run> of_;  ///< nothing: it is closed
    std::optional<ring::parameter_schema> known_;
};

}  // namespace carousel::python
