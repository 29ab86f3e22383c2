#include "ring/blame.hpp"

namespace carousel::ring {

// A crash between two of these words leaves a join's inputs with different counts; the higher count is
// authoritative (take_attempts).
void blame_waiting(shm::control_block& c, u32 stage, u64 ring_sequence, bool single,
                   const std::function<void()>& between) {
    for_each_lease_of(c, stage, ring_sequence, [&](shm::word& at, u64 raw, u32 generation) {
        const lease_word w = lease_word::of(raw).seen_at(generation);
        if (w.state != lease_state::wait) return;
        lease_word next = w;
        next.attempts =
            single ? (w.attempts & 8U) | std::min(w.failures() + 1, max_failures) : w.attempts | 8U;
        if (between) between();
        cas(at, raw, next.pack());
    });
}

}  // namespace carousel::ring
