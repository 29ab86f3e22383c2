#pragma once
// What a stage does with its time, as its processes count it (shm::stage_counters). All of them are sums over
// the stage's seats:
//
//   busy_ns         at least one frame is in flight: claimed and not yet committed by its owner
//   wait_input_ns   the thread that takes frames has a free lane and no frame to take: it isn't made yet, or,
//                   at a source with a rate, not due yet
//   wait_output_ns  it could take a frame, and the ring behind has no room, since its oldest frame waits for
//                   a reader
//   wait_own_ns     this stage's own frames must come through first: every lane is in work, a suspect frame
//                   is alone, or the frame that the ring behind waits for is this stage's own
//   wait_turn_ns    it has a frame to begin, and another stage has its turn on the GPU (ring/turn.hpp)
//
// A thread waits for one of them at a time, so the waits of a seat never add up to more than the time
// that has passed. Busy lies across them: a stage with several lanes waits for its input, say, while frames
// are in flight.
//
// `busy_ns` is added to while a frame is in work, at each commit and each heartbeat (50 ms), and never by a
// reader, so that every reader sees one figure that only grows. `busy_since_ns` of the process's entry says
// up to where it has been counted: whoever moves that word owns the span that it has passed, so several
// threads may count at once and no span is counted twice. A death between the move and the sum, or between
// two beats, loses that span (tens of milliseconds) and leaves a word of a dead entry, which nobody looks at
// and the next holder of the entry begins at 0.

#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

/// The first frame is taken. One thread begins and ends at a time (the runner's lock).
inline void begin_busy(shm::incarnation& e, u64 now) noexcept {
    const shm::block_open open;
    e.busy_since_ns.store(now, std::memory_order_relaxed);
}

/// Counts what has passed; `idle`: nothing is in flight any more. Any thread of the process.
inline void count_busy(shm::incarnation& e, shm::stage_counters& n, u64 now, bool idle) noexcept {
    const shm::block_open open;
    u64 since = e.busy_since_ns.load(std::memory_order_relaxed);
    do {
        if (since == 0 || (since >= now && !idle)) return;
    } while (!e.busy_since_ns.compare_exchange_weak(since, idle ? 0 : now, std::memory_order_relaxed));
    if (now > since) n.busy_ns.fetch_add(now - since, std::memory_order_relaxed);
}

}  // namespace carousel::telemetry
