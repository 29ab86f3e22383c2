#pragma once
// A process of the simulated histories, and what may happen in the middle of one of its steps.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/crash_point.hpp"
#include "simulated_flips.hpp"
#include "simulated_world.hpp"

namespace carousel::test {

/// One incarnation: alive, or a zombie that may still take steps, until it is fenced.
struct process {
    ring::incarnation_id incarnation;
    std::unique_ptr<ring::worker> w;
    std::unique_ptr<event_context> context;
    std::unique_ptr<ring::helper> help;
    std::vector<work> jobs;
    bool zombie = false, exited = false, revoked = false;
};

/// Calls `at_each` at every crash point, if `wanted`, until the end of its scope.
struct while_hooked {
    while_hooked(bool wanted, std::function<void(crash_point)> at_each) {
        if (wanted) set_crash_hook(std::move(at_each));
    }
    ~while_hooked() { set_crash_hook({}); }
    while_hooked(const while_hooked&) = delete;
    while_hooked& operator=(const while_hooked&) = delete;
};

/// The crash points of worker::begin() between its read of a lease word and its CAS.
inline bool is_before_a_lease(crash_point at) noexcept {
    return at == crash_point::job_chosen || at == crash_point::job_opened ||
           at == crash_point::sequence_leased || at == crash_point::input_leased;
}

inline bool has_two_free_slots(const shm::control_block& c, ring::worker& w) noexcept {
    for (u32 k = 0; k < w.outputs(); ++k) {
        const shm::link_block& l = c.link[w.output(k).index()];
        u32 free = 0;
        for (u32 slot = 0; slot < l.slots; ++slot)
            free += ring::slot_word::of(ring::load(l.slot[slot])).state == ring::slot_state::free ? 1 : 0;
        if (free < 2) return false;
    }
    return true;
}

}  // namespace carousel::test
