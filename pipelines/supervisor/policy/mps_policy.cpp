#include "supervisor/policy/mps_policy.hpp"

#include "core/errors.hpp"
#include "device/device_failure.hpp"
#include "ring/participants.hpp"

namespace carousel::supervisor {

bool breaks_domain(const client_view& v) noexcept {
    const bool unasked = !v.by_supervisor || v.ended;
    return v.client && !v.terminated && unasked && !v.through && !v.run_ends && !v.rebuilding;
}

bool device_is_quiet(const client_view& v) noexcept {
    return !v.client || v.terminated || v.through || v.run_ends || (v.rebuilding && !v.domain_ends);
}

excuse excuse_for(const death& how, bool domain_ends, bool breaks) noexcept {
    if (how.deadline) return excuse::none;
    const bool of_the_device =
        how.known && how.signal == 0 &&
        (how.exit_code == exit_code::gpu_fault || how.exit_code == exit_code::gpu_lost ||
         (how.exit_code == exit_code::no_device && !how.was_ready));
    return of_the_device ? excuse::device : domain_ends && !breaks ? excuse::domain : excuse::none;
}

bool died_by_itself(u64 raw) noexcept {
    const ring::exit_note note = ring::exit_note::of(raw);
    return note.present && !note.outside &&
           (note.signal != 0 ||
            (note.exit_code != exit_code::gpu_fault && note.exit_code != exit_code::gpu_lost &&
             note.exit_code != exit_code::no_device));
}

bool fault_row::add(u64 frames_moved) noexcept {
    in_row = frames_moved != moved_at_last ? 1 : in_row + 1;
    moved_at_last = frames_moved;
    return in_row >= max_faults_in_row;
}

}  // namespace carousel::supervisor
