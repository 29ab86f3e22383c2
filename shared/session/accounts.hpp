#pragma once
// The counts that a process keeps in the control block about itself and its frames: plain sums, for display
// and for the supervisor's policies; no step of the protocol depends on them. May be used from any thread; a
// crash loses the last addition.

#include "core/clock.hpp"
#include "ring/worker.hpp"
#include "shm/sink.hpp"
#include "telemetry/busy_time.hpp"
#include "telemetry/histogram.hpp"

namespace carousel::session {

/// Stores the heartbeat of the process that holds `entry`.
inline void beat(shm::incarnation& entry, shm::stage_counters& n) noexcept {
    const u64 now = now_ns();
    entry.heartbeat_ns.store(now, std::memory_order_release);
    entry.cpu_ns.store(process_cpu_ns(), std::memory_order_relaxed);
    telemetry::count_busy(entry, n, now, false);
}

/// Counts a frame that a stage has finished, and its latencies. `leaves`: the stage is a sink, so the frame
/// leaves the run here.
inline void count_frame(shm::stage_counters& n, const ring::job& j, u64 finished_ns, bool leaves) noexcept {
    n.frames.fetch_add(1, std::memory_order_relaxed);
    telemetry::add_sample(n.latency, finished_ns - j.claimed_ns);
    telemetry::raise_to(n.latency_max_ns, finished_ns - j.claimed_ns);
    if (!leaves) return;
    if (j.born_ns != 0 && j.born_ns < finished_ns) {
        telemetry::add_sample(n.end_to_end, finished_ns - j.born_ns);
        telemetry::raise_to(n.end_to_end_max_ns, finished_ns - j.born_ns);
    }
    telemetry::count_from_capture(n, j, finished_ns);
}

/// Counts a frame that the process of `entry` has committed. A tombstone frame is not a delivery: an
/// incarnation that commits only tombstones (because of a full disk, for example) counts as an incarnation
/// without frames.
inline void count_commit(ring::worker& w, shm::incarnation& entry, const ring::job& j,
                         u64 committed_ns) noexcept {
    count_frame(w.stage().counters, j, committed_ns, shm::is_sink(w.stage()));
    if (!j.is_tombstone() && entry.commits.fetch_add(1, std::memory_order_relaxed) == 0)
        entry.first_commit_ns.store(committed_ns, std::memory_order_relaxed);
    telemetry::raise_to(entry.last_commit_ns, committed_ns);
}

}  // namespace carousel::session
