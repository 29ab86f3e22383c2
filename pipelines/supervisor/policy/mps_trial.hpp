#pragma once
// Whose fault is it that an MPS domain ends again and again? All clients get the same error, so a fault in
// the domain names nobody. A trial finds out: of the stages that had work on the device (the suspects) one at
// a time works in a GPU context of its own, beside the domain.
//
//   it meets the device's fault there         it died alone: it is blamed, as any stage is, and keeps a
//                                             context of its own for the rest of the run
//   the domain faults meanwhile               it wasn't there: acquitted, the next one is tried
//   it commits what it had in flight, and one more   acquitted, the next one is tried
//
// A trial begins with the second fault in a row that nobody asked for and behind which no frame moved; a
// single one is nobody's. Each fault of the domain acquits one, so a trial of n suspects ends behind n faults
// at the latest; when nobody has died alone the row of faults counts on, and the domain is given up at its
// end (mps_policy.hpp).
//
// Plain rules on plain data; mps_seats.cpp carries them out. What a supervisor's death loses is who is still
// to be tried: who is on trial and who is blamed stands in the run's state.

#include <algorithm>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"

namespace carousel::supervisor {

struct mps_trial {
    u32 on_trial = shm::none;  ///< a stage
    std::vector<u32> waiting;  ///< suspects that come behind it
    std::vector<u32> blamed;   ///< those that have died alone

    [[nodiscard]] bool in_progress() const noexcept { return on_trial != shm::none; }
    [[nodiscard]] bool is_blamed(u32 stage) const noexcept {
        return std::find(blamed.begin(), blamed.end(), stage) != blamed.end();
    }
    /// To have a GPU context of its own.
    [[nodiscard]] bool is_alone(u32 stage) const noexcept { return stage == on_trial || is_blamed(stage); }
    /// In the order in which they are to be tried. Nobody: no trial.
    void begin(std::vector<u32> suspects) noexcept {
        waiting = std::move(suspects);
        next();
    }
    /// The stage on trial goes back into the domain; the next suspect is on trial, or nobody.
    void acquit() noexcept { next(); }
    /// It has died alone: nobody else is suspected.
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

/// Faults in a row from which on suspects are tried.
inline constexpr u32 faults_before_trial = 2;

}  // namespace carousel::supervisor
