#pragma once
// What the frames of a run are made with: its parameters' names and types, asked for when the first of its
// frames in Python is asked for their values. Used under the GIL, which is others' meanwhile.

#include <carousel/port.hpp>

#include <optional>
#include <stdexcept>
#include <utility>

#include "stages/python/gil.hpp"

namespace carousel::python {

class run_parameters {
public:
    explicit run_parameters(open_run of) : of_(std::move(of)) {}
    /// They are the same as long as the run lives. Throws shm_error: its supervisor does not answer.
    [[nodiscard]] const ring::parameter_schema& schema() {
        if (!known_) {
            if (!of_)
                throw std::runtime_error(
                    "what this frame's parameters are is not known: nobody had asked for a frame's before "
                    "its run was closed");
            const open_run of = *of_;
            ring::parameter_schema loaded = [&] {
                const gil_released others;
                return of.parameters();
            }();
            if (!known_) known_ = std::move(loaded);  // else another thread was faster
        }
        return *known_;
    }
    /// A frame that is kept keeps no run that was closed.
    void close() { of_.reset(); }

private:
    std::optional<open_run> of_;  ///< nothing: it is closed
    std::optional<ring::parameter_schema> known_;
};

}  // namespace carousel::python
