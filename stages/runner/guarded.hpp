#pragma once
// Calls a stage's own code from the runner: an exception ends the process, with a note for the supervisor.

#include <algorithm>
#include <exception>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "ring/exit_notes.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {

/// Frames in flight when a device failed. No driver call reports the address or the kernel, so any of the
/// frames in flight may be the cause.
struct frames_on_device {
    u64 oldest = 0, newest = 0;
    u32 count = 1;
};

inline void note_device_fault(const frames_on_device& f) {
    log::error(
        "the device reports neither the address nor the kernel: any of the {} frames in flight, {} to {}, "
        "may be the cause",
        f.count, f.oldest, f.newest);
    note_wild_write(ring::wild_write{ring::wild_write_target::device, std::min(f.count, 255U),
                                     static_cast<u32>(std::min<u64>(f.newest - f.oldest, 255)), f.oldest}
                        .pack());
}

/// `in_flight`: called if the device has failed.
template <typename F, typename InFlight>
void guarded(const char* what, u64 ring_sequence, F&& fn, InFlight&& in_flight) {
    try {
        fn();
    } catch (const carousel::error& e) {
        log::error("{} of frame {}: {}", what, ring_sequence, e.what());
        if (e.code() == exit_code::gpu_fault) note_device_fault(in_flight());
        die(e.code());
    } catch (const std::exception& e) {
        log::error("{} of frame {} threw: {}", what, ring_sequence, e.what());
        die(exit_code::stage_exception);
    }
}

template <typename F>
void guarded(const char* what, u64 ring_sequence, F&& fn) {
    guarded(what, ring_sequence, std::forward<F>(fn), [&] {
        return frames_on_device{ring_sequence, ring_sequence};
    });
}

}  // namespace carousel::stages
