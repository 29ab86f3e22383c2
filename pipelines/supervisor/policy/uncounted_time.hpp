#pragma once
// Time that no deadline counts: a CPU quota or a freezer has stopped the run's control group, or the
// supervisor itself did not run. Plain data; cgroup_watch.hpp feeds it.

#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

/// All times are CLOCK_MONOTONIC in nanoseconds.
class uncounted_time {
public:
    /// `ns` of the time from `from` to `until` don't count. Intervals come in order and don't overlap; at
    /// most the length of the interval is taken.
    void add(u64 from, u64 until, u64 ns);
    /// How much of the time between the two doesn't count. Within an interval it is spread evenly.
    [[nodiscard]] u64 between(u64 from, u64 until) const noexcept;
    /// When a clock that has run since `since` would have begun, had all time counted: now minus the result
    /// is its age. 0, which stands for a clock that doesn't run, remains 0.
    [[nodiscard]] u64 shifted(u64 since, u64 now) const noexcept {
        return since == 0 ? 0 : since + between(since, now);
    }

    static constexpr std::size_t most_points = 4096;  ///< beyond, older intervals are joined

private:
    struct point {
        u64 at = 0, sum = 0;  ///< how much has not counted up to then
    };
    [[nodiscard]] u64 sum_at(u64 time) const noexcept;
    std::vector<point> points_;
};

}  // namespace carousel::supervisor
