#pragma once
// Limits and events of the control groups of a process: version 2, version 1, or both mounted at once.
//
// A limit of any ancestor applies, so each query covers the process's own group and every ancestor that is
// visible below the mount point. The groups come from /proc/PID/cgroup and /proc/self/mountinfo. Any thread
// may call; nothing here throws over a file that is missing or that can't be parsed.

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel {

enum class cgroup_controller : u8 { memory, cpu, pids, freezer };

/// The groups of one process for one controller.
struct cgroup_chain {
    bool v2 = false;
    /// Folders, the process's own group first, then its ancestors up to the mount point. Empty: the
    /// controller is not mounted, or the group is outside of what is mounted.
    std::vector<std::string> folders;
};

/// The tightest limit of a chain.
struct cgroup_limit {
    u64 limit = 0, used = 0;
    std::string file;  ///< the file that holds the limit
    [[nodiscard]] u64 left() const noexcept { return limit > used ? limit - used : 0; }
};
struct cgroup_cpu_limit {
    f64 cpus = 0;      ///< quota divided by period
    std::string file;  ///< the file that holds the quota
};

class cgroups {
public:
    /// Groups of a process (0: this process), as this process sees them. `root` precedes the paths of all
    /// files that are read ("": none).
    [[nodiscard]] static cgroups of(i32 pid = 0, std::string root = "");

    [[nodiscard]] const cgroup_chain& chain(cgroup_controller of) const noexcept {
        return chains_[static_cast<u8>(of)];
    }
    /// In bytes; page cache that the kernel can drop does not count as used. Nothing: no group has a limit.
    [[nodiscard]] std::optional<cgroup_limit> memory() const;
    /// Processes and threads. Nothing: no group has a limit.
    [[nodiscard]] std::optional<cgroup_limit> pids() const;
    [[nodiscard]] std::optional<cgroup_cpu_limit> cpu() const;
    /// Nanoseconds for which a CPU quota has stopped the groups, added over their processors: a difference of
    /// two readings may exceed the time between them. 0 where no group has a quota.
    [[nodiscard]] u64 throttled_ns() const;
    /// Processes of the group (version 2: or of a group below it) that the kernel's out-of-memory killer has
    /// ended; those of the whole machine where the group doesn't count them. Nothing: unknown.
    [[nodiscard]] std::optional<u64> oom_kills() const;
    /// Is the group frozen, by itself or by an ancestor?
    [[nodiscard]] bool frozen() const;

private:
    std::string root_;
    cgroup_chain chains_[4];
    std::string unified_;  ///< own group of version 2, whose freezer needs no controller; "": not mounted
};

}  // namespace carousel
