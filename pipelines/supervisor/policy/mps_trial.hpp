#pragma once
// Finds the stage that makes an MPS domain fault repeatedly. All clients get the same error, so a fault in
// the domain does not identify a stage. In a trial, the stages that had work on the device (the suspects)
// work one at a time in a separate GPU context, concurrently with the domain.
//
//   the suspect meets the device's fault there      it died alone: it is blamed like any stage, and keeps
//                                                   a separate context for the rest of the run
//   the domain faults meanwhile                     the suspect was not in it: acquitted; the next is tried
//   the suspect commits what it had in flight, and  acquitted; the next is tried
//     one more frame
//
// A trial begins with the second unprovoked fault in a row without a frame delivered in between; a single
// fault is blamed on no stage. Each fault of the domain acquits one suspect, so a trial of n suspects ends
// after at most n faults. If no suspect died alone, the count of consecutive faults continues, and the domain
// is abandoned when the limit is reached (mps_policy.hpp).
//
// Plain functions on plain data; mps_seats.cpp carries the results out. If the supervisor dies, the list of
// the remaining suspects is lost; the stage on trial and the blamed stages are part of the run's state.

#include <algorithm>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"

namespace carousel::supervisor {

struct mps_trial {
    u32 on_trial = shm::none;  ///< index of a stage
    std::vector<u32> waiting;  ///< remaining suspects, in order
    std::vector<u32> blamed;   ///< stages that died alone

    [[nodiscard]] bool in_progress() const noexcept { return on_trial != shm::none; }
    [[nodiscard]] bool is_blamed(u32 stage) const noexcept {
        return std::find(blamed.begin(), blamed.end(), stage) != blamed.end();
    }
    /// The stage needs a separate GPU context.
    [[nodiscard]] bool is_alone(u32 stage) const noexcept { return stage == on_trial || is_blamed(stage); }
    /// `suspects` are in the order of their trials. Empty: no trial.
    void begin(std::vector<u32> suspects) noexcept {
        waiting = std::move(suspects);
        next();
    }
    /// The stage on trial returns to the domain; the next suspect, if any, is on trial.
    void acquit() noexcept { next(); }
    /// The stage on trial died alone, so no other stage is suspected any more.
    void blame() noexcept {
        blamed.push_back(on_trial);
        waiting.clear();
        on_trial = shm::none;
    }

private:
    void next() noexcept {
        on_trial = waiting.empty() ? shm::none : waiting.front();
        if (!waiting.empty()) waiting.erase(waiting.begin());
    }
};

/// Number of faults in a row that starts a trial.
inline constexpr u32 faults_before_trial = 2;

}  // namespace carousel::supervisor
