#pragma once
// The time of a stage by activity, as counted by its processes (shm::stage_counters). Each value is a sum
// over the stage's seats:
//   busy_ns         at least one frame is in flight: claimed and not yet committed by its owner
//   wait_input_ns   the thread that claims frames has a free lane and no frame to claim: none is ready or, at
//                   a source with a rate, none is due yet
//   wait_output_ns  that thread could claim a frame, but the output ring has no room, since the ring's oldest
//                   frame waits for a reader
//   wait_own_ns     this stage's own frames must complete first: every lane is in use, a suspect frame runs
//                   alone, or the frame that the output ring waits for is this stage's own
//   wait_turn_ns    that thread has a frame to begin, and another stage has its turn on the GPU
//                   (ring/turn.hpp)
// A thread waits for one of these at a time, so the sum of a seat's waits never exceeds the elapsed time.
// Busy time overlaps with the waits: for example, a stage with several lanes waits for its input while frames
// are in flight.
// `busy_ns` is increased while a frame is in progress, at each commit and each heartbeat (50 ms), and never
// by a reader, so every reader reads one value that only grows. `busy_since_ns` of the process's entry is the
// time up to which busy time has been counted. A thread that advances this word counts the span by which it
// has advanced the word. So several threads may count concurrently, and no span is counted twice. If the
// process dies between the advance and the addition, or between two heartbeats, that span (tens of
// milliseconds) is not counted, and the word keeps its value in a dead entry: no process reads the word of a
// dead entry, and the next owner of the entry sets the word to 0.

#include "core/types.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

/// To be called when the first frame is claimed. Only one thread at a time begins or ends busy time (under
/// the runner's lock).
inline void begin_busy(shm::incarnation& e, u64 now) noexcept {
    const shm::block_open open;
    e.busy_since_ns.store(now, std::memory_order_relaxed);
}

/// Counts the time since the last call; `idle`: no frame is in flight any more. May be called from any thread
/// of the process.
inline void count_busy(shm::incarnation& e, shm::stage_counters& n, u64 now, bool idle) noexcept {
    const shm::block_open open;
    u64 since = e.busy_since_ns.load(std::memory_order_relaxed);
    do {
        if (since == 0 || (since >= now && !idle)) return;
    } while (!e.busy_since_ns.compare_exchange_weak(since, idle ? 0 : now, std::memory_order_relaxed));
    if (now > since) n.busy_ns.fetch_add(now - since, std::memory_order_relaxed);
}

// The difference of two readings of a counter.

/// Counters only grow; a value smaller than before belongs to another run, and the difference is then 0.
[[nodiscard]] constexpr u64 grown(u64 now, u64 before) noexcept { return now > before ? now - before : 0; }

}  // namespace carousel::telemetry
