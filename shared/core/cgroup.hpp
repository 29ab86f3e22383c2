#pragma once
// Limits and events of the control groups of a process: version 2, version 1, or both mounted at once.
// A limit of any ancestor applies, so each query covers the process's own group and every ancestor that is
// visible below the mount point. The groups come from /proc/PID/cgroup and /proc/self/mountinfo. Any thread
// may call; a file that is missing or can't be parsed is not an error.

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel {

enum class cgroup_controller : u8 { memory, cpu, pids, freezer, cpuset };

/// The groups of one process for one controller.
struct cgroup_chain {
    bool v2 = false;
    /// Folders, the process's own group first, then its ancestors up to the mount point. Empty if the
    /// controller is not mounted, or the group is outside the mounted hierarchy.
    std::vector<std::string> folders;
};

/// Of all limits in a chain of groups, the one that leaves the least room.
struct cgroup_limit {
    u64 limit = 0, used = 0;
    std::string file;  ///< the file that holds the limit
    [[nodiscard]] u64 left() const noexcept { return limit > used ? limit - used : 0; }
};
struct cgroup_cpu_limit {
    f64 cpus = 0;      ///< quota divided by period
    std::string file;  ///< the file that holds the quota
};

struct cgroup_cpu_set {
    std::string cpus;  ///< "0-3,8"
    std::string file;
};

class cgroups {
public:
    /// Returns the groups of a process (0: this process), as seen by this process. `root` is prepended to the
    /// paths of all files that are read ("": nothing).
    [[nodiscard]] static cgroups of(i32 pid = 0, std::string root = "");

    [[nodiscard]] const cgroup_chain& chain(cgroup_controller of) const noexcept {
        return chains_[static_cast<u8>(of)];
    }
    /// Limit in bytes (version 2: memory.max, or memory.high, above which the kernel slows the group down);
    /// page cache that the kernel can reclaim does not count as used. Returns nothing if no group has a
    /// limit.
    [[nodiscard]] std::optional<cgroup_limit> memory() const;
    /// Processes and threads. Returns nothing if no group has a limit.
    [[nodiscard]] std::optional<cgroup_limit> pids() const;
    /// The smallest CPU quota. Returns nothing if no group has a quota.
    [[nodiscard]] std::optional<cgroup_cpu_limit> cpu() const;
    /// The processors that the group may use; its ancestors' restrictions are included. Returns nothing if no
    /// group has a set.
    [[nodiscard]] std::optional<cgroup_cpu_set> cpu_set() const;
    /// Nanoseconds for which a CPU quota has throttled the groups, summed over their processors: the
    /// difference between two readings may exceed the elapsed time. 0 if no group has a quota.
    [[nodiscard]] u64 throttled_ns() const;
    /// Number of processes of the group (version 2: including groups below it) that the kernel's
    /// out-of-memory killer has ended; if the group does not count such processes, their number on the entire
    /// machine. Nothing: unknown.
    [[nodiscard]] std::optional<u64> oom_kills() const;
    /// Returns true if the group is frozen, by itself or by an ancestor.
    [[nodiscard]] bool frozen() const;

private:
    std::string root_;
    cgroup_chain chains_[5];
    std::string unified_;  ///< the process's own group of version 2, whose freezer needs no controller; "":
                           ///< not mounted
};

/// Number of threads that can compute concurrently: the processors of this process's affinity mask, or fewer
/// if a CPU quota of its control groups allows fewer (rounded up). At least 1.
[[nodiscard]] unsigned usable_cores() noexcept;
/// The same, ignoring the quota.
[[nodiscard]] unsigned affine_cores() noexcept;

}  // namespace carousel
