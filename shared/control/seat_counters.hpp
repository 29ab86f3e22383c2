#pragma once
// What the supervisor counts per instance of a stage for the metrics. The counts belong to the run: the
// supervisor saves them in its state file, so they survive the processes of the stage, the supervisor's
// successors and a rebuild of the control block. Part of the answer to `ps`.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "core/described.hpp"
#include "core/enum_names.hpp"
#include "core/types.hpp"

namespace carousel::run {

/// Why a process ended before the end of the run.
enum class exit_reason : u8 {
    deadline,       ///< the supervisor has ended it, because it missed a deadline
    exit,           ///< it exited by itself
    gpu_fault,      ///< its work on the GPU failed
    injected,       ///< a fault that `carousel inject` requested
    mps_domain,     ///< its MPS domain was renewed, or it was moved into or out of the domain
    out_of_memory,  ///< the kernel's out-of-memory killer
    port,           ///< an external program has left its port
    rebuild,        ///< the control block and the rings were rebuilt
    requested,      ///< `carousel restart` or `carousel down`
    signal,         ///< any other signal
};
BOOST_DESCRIBE_ENUM(exit_reason, deadline, exit, gpu_fault, injected, mps_domain, out_of_memory, port,
                    rebuild, requested, signal)

/// A histogram of durations with fixed upper bounds.
struct duration_counts {
    static constexpr std::array bounds_s{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0};
    /// counts[k]: durations above bounds_s[k - 1], up to bounds_s[k]; the last element: longer ones
    std::vector<u64> counts = std::vector<u64>(bounds_s.size() + 1);
    f64 sum_s = 0;

    void add(f64 seconds);
    [[nodiscard]] u64 total() const noexcept;
    bool operator==(const duration_counts&) const = default;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(duration_counts, (), (counts, sum_s))

struct seat_counters {
    /// Processes that ended before the end of the run, by the name of the exit_reason.
    std::map<std::string, u64> exits;
    /// Times from the death of a process (or the signal of `carousel kill`) to the first commit of its
    /// successor. A time is counted only if one supervisor has observed both.
    duration_counts takeovers;
    duration_counts standby_takeovers;  ///< the same, if the successor was a warm standby
    u64 abandoned = 0;                  ///< frames that the stage gave up after max_attempts
    u64 cpu_ns = 0;                     ///< CPU time of the processes on the seat

    bool operator==(const seat_counters&) const = default;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(seat_counters, (), (exits, takeovers, standby_takeovers, abandoned, cpu_ns))

inline void duration_counts::add(f64 seconds) {
    counts.resize(bounds_s.size() + 1);  // a damaged state file may have another size
    std::size_t k = 0;
    while (k < bounds_s.size() && seconds > bounds_s[k]) ++k;
    ++counts[k];
    sum_s += seconds;
}

inline u64 duration_counts::total() const noexcept {
    u64 sum = 0;
    for (const u64 n : counts) sum += n;
    return sum;
}

}  // namespace carousel::run
