#pragma once
// Status words and canaries as one step of a queue: a GPU does it in one launch, which a frame's graph may
// play. Who may call: whoever may enqueue on the queue.

#include <span>

#include "device/backend.hpp"
#include "device/canary.hpp"

namespace carousel::device {

struct canary_step {
    u64* at = nullptr;              ///< canary_bytes of ring memory, 16-byte aligned
    u64 key = 0;                    ///< canary_key()
    canary_check* found = nullptr;  ///< host-visible memory (allocate_host), cleared; a plant leaves it
};
inline constexpr std::size_t most_canaries = 2 * status_step::most;  ///< inputs and outputs

/// queue::status(), and a look at each of the canaries, at most `most_canaries`: behind what is in the queue
/// and before what comes after, in no order to the words and to each other.
///
/// `at_once`: a CPU's queue looks on this thread, in front of what the caller's own code does in its queue's
/// place. So nothing in the queue may still use such a canary.
void guarded_status(queue& on, const status_step& step, std::span<const canary_step> canaries,
                    bool at_once = false);

/// Writes the patterns, of at most `most_canaries`. On a GPU behind what is in the queue and before what
/// comes after. A CPU's queue plants at once, on this thread: there the caller's own code writes to ring
/// memory, too, and what it writes behind this call comes behind the pattern. So nothing in the queue may
/// still use a canary that is planted; whoever fills a slot that was free has that.
void plant_canaries(queue& on, std::span<const canary_step> canaries);

}  // namespace carousel::device
