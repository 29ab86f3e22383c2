#pragma once
// Time that no deadline counts, because a CPU quota or a freezer had stopped the run's control group, or the
// supervisor itself did not run. Plain data; cgroup_watch.hpp supplies it.

#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

/// All times are CLOCK_MONOTONIC in nanoseconds.
class uncounted_time {
public:
    /// Excludes `ns` of the time from `from` to `until`, at most the length of that interval. Intervals must
    /// be in order and must not overlap.
    void add(u64 from, u64 until, u64 ns);
    /// Returns the excluded time between two times. Within an interval the excluded time is spread evenly.
    [[nodiscard]] u64 between(u64 from, u64 until) const noexcept;
    /// Shifts the start time `since` of a clock by the excluded time since then: `now` minus the result is
    /// the clock's counted age. 0, which stands for a clock that is not running, remains 0.
    [[nodiscard]] u64 shifted(u64 since, u64 now) const noexcept {
        return since == 0 ? 0 : since + between(since, now);
    }

    static constexpr std::size_t most_points = 4096;  ///< above this limit, older intervals are merged

private:
    struct point {
        u64 at = 0, sum = 0;  ///< total excluded time up to `at`
    };
    [[nodiscard]] u64 sum_at(u64 time) const noexcept;
    std::vector<point> points_;
};

}  // namespace carousel::supervisor
