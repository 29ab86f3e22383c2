#pragma once
// Status words and canaries as one step of a queue; on a GPU the step is one launch, which a frame's graph
// may contain. Threading: the thread that may enqueue on the queue.

#include <span>

#include "device/backend.hpp"
#include "device/canary.hpp"

namespace carousel::device {

struct canary_step {
    u64* at = nullptr;              ///< canary_bytes of ring memory, 16-byte aligned
    u64 key = 0;                    ///< canary_key()
    canary_check* found = nullptr;  ///< host-visible (allocate_host), cleared; unused by plant_canaries()
};
inline constexpr std::size_t most_canaries = 2 * status_step::most;  ///< inputs and outputs

/// queue::status(), plus a check of each of the canaries, at most `most_canaries`. The checks run after the
/// work in the queue and before later work, in no order relative to the status words and to each other.
///
/// `at_once`: a CPU queue checks on this thread, before the work that the caller's own code does instead of
/// its queue. No entry of the queue may then still use such a canary.
void guarded_status(queue& on, const status_step& step, std::span<const canary_step> canaries,
                    bool at_once = false);

/// Writes the patterns of at most `most_canaries` canaries. On a GPU this happens after the work in the queue
/// and before later work. A CPU queue plants immediately, on this thread: there the caller's own code also
/// writes to ring memory, and its writes after this call must come after the pattern. Therefore no entry of
/// the queue may still use a canary that is planted; this is so for a caller that fills a slot which was
/// free.
void plant_canaries(queue& on, std::span<const canary_step> canaries);

}  // namespace carousel::device
