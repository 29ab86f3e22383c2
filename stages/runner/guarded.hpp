#pragma once
// A stage's own code, called from the runner: whatever it throws ends the process, with a note for the
// supervisor.

#include <exception>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "ring/stray.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {

template <typename F>
void guarded(const char* what, u64 sequence, F&& fn) {
    try {
        fn();
    } catch (const carousel::error& e) {
        log::error("{} of frame {}: {}", what, sequence, e.what());
        if (e.code() == exit_code::gpu_fault)
            note_stray(ring::stray{ring::stray_target::device, 0, 0, sequence}.pack());
        die(e.code());
    } catch (const std::exception& e) {
        log::error("{} of frame {} threw: {}", what, sequence, e.what());
        die(exit_code::stage_exception);
    }
}

}  // namespace carousel::stages
