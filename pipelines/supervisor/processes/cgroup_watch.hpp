#pragma once
// Measures the effect of the supervisor's control groups on the run: the time for which a CPU quota stops the
// run, and the processes that the kernel's out-of-memory killer ends. Stages are in the same groups unless a
// tool moves them.
//
// This state is not saved, and a supervisor that takes a run over starts with fresh counters. An
// out-of-memory kill between the two supervisors is therefore reported as a plain SIGKILL.

#include <optional>
#include <string>

#include "core/cgroup.hpp"
#include "supervisor/policy/clocks.hpp"

namespace carousel::supervisor {

class cgroup_watch {
public:
    explicit cgroup_watch(std::string root = "");

    /// Called in each tick, before any deadline is judged. Reads files at most ten times per second.
    void tick(u64 now);
    [[nodiscard]] const uncounted_time& uncounted() const noexcept { return uncounted_; }
    /// Returns the part of the time since the last call that must not be counted.
    [[nodiscard]] u64 consume_uncounted_ns() noexcept;
    /// Returns a log message with the quota's file, once, after a second in which the quota has stopped the
    /// run for more than half of the time. Otherwise "".
    [[nodiscard]] std::string log_text();
    /// To be called when a process has died by SIGKILL from an unknown sender. True if the out-of-memory
    /// killer has ended a process of the group in the last seconds and no other death has been attributed to
    /// that kill.
    [[nodiscard]] bool consume_oom_kill(u64 now);
    /// Returns "memory.max of GROUP allows 512.0 MiB"; "": no group has a limit.
    [[nodiscard]] std::string memory_text() const;

private:
    void read_oom(u64 now);

    std::string root_;
    cgroups groups_;
    std::string quota_file_;  ///< "": no quota
    u64 checked_ns_ = 0;      ///< time at which the groups were last read from /proc
    u64 ticked_ns_ = 0, window_ns_ = 0, starved_ns_ = 0;
    u64 throttled_ns_ = 0;  ///< value of the groups' throttling counter at the beginning of the window
    uncounted_time uncounted_;
    u64 untaken_ns_ = 0, second_ns_ = 0, stopped_ns_ = 0;
    bool reported_ = false;
    std::string log_text_;
    std::optional<u64> oom_seen_;
    u64 oom_unclaimed_ = 0, oom_at_ns_ = 0;
};

}  // namespace carousel::supervisor
