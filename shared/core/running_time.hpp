#pragma once
// Detects the time in which this process did not run, because it was stopped by a signal or frozen by its
// control group, because the machine was suspended, or because no processor was free for it. A deadline for
// another process counts only time in which the observer ran, because both processes may have been stopped,
// and because messages that arrived meanwhile have not been read. A pause that is shorter than longest_ns
// counts as running time. The supervisor, which also excludes the time of a CPU quota, uses
// supervisor/processes/cgroup_watch.hpp instead.

#include <algorithm>
#include <atomic>

#include "core/types.hpp"

namespace carousel {

class running_time {
public:
    /// `longest_ns`: upper bound of the time between two calls of consume_gap() in a process that runs.
    explicit running_time(u64 longest_ns) noexcept : longest_ns_(longest_ns) {}

    /// Must be called regularly, always on the same thread. Returns the time in ns by which the pause since
    /// the last call exceeds the bound, for later_by_gap(). 0 in the first call.
    [[nodiscard]] u64 consume_gap(u64 now) noexcept {
        const u64 called = called_ns_.load(std::memory_order_relaxed);
        const u64 pause = called != 0 && now > called ? now - called : 0;
        if (pause > longest_ns_) resumed_ns_.store(now, std::memory_order_relaxed);
        called_ns_.store(now, std::memory_order_release);
        return pause > longest_ns_ ? pause - longest_ns_ : 0;
    }
    /// Returns the end of the last pause that exceeded the bound; `now` if such a pause may just have ended.
    /// May be called on any thread.
    [[nodiscard]] u64 resumed_ns(u64 now) const noexcept {
        const u64 called = called_ns_.load(std::memory_order_acquire);
        if (called != 0 && now > called && now - called > longest_ns_) return now;
        return resumed_ns_.load(std::memory_order_relaxed);
    }

private:
    u64 longest_ns_;
    std::atomic<u64> called_ns_{0}, resumed_ns_{0};
};

/// Returns the start time `since` of a deadline, moved later by a gap that ended at `now`. The result is not
/// later than `now`, because the deadline may have started within the gap or after it, for example when the
/// process, running again, handled the events that it found.
[[nodiscard]] constexpr u64 later_by_gap(u64 since, u64 gap, u64 now) noexcept {
    return std::max(since, std::min(since + gap, now));
}

}  // namespace carousel
