#pragma once
// Limits and events of the control groups (cgroups) of a process. The system may have mounted cgroup v2,
// cgroup v1, or both. A limit of any ancestor applies, so each query covers the process's own cgroup and
// every ancestor that is visible below the mount point. The cgroups are found in /proc/PID/cgroup and
// /proc/self/mountinfo. Any thread may call these functions; a file that is missing or can't be parsed is not
// an error.

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel {

enum class cgroup_controller : u8 { memory, cpu, pids, freezer, cpuset };

/// The cgroups of one process for one controller.
struct cgroup_chain {
    bool v2 = false;
    /// The folder of the process's own cgroup, followed by those of its ancestors up to the mount point.
    /// Empty if the controller is not mounted, or if the cgroup is outside the mounted hierarchy.
    std::vector<std::string> folders;
};

/// Of all limits in a chain of cgroups, the one that leaves the least room.
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
    /// Returns the cgroups of a process (0: this process), with the paths that this process sees. `root` is
    /// prepended to the paths of all files that are read; it may be empty.
    [[nodiscard]] static cgroups of(i32 pid = 0, std::string root = "");

    [[nodiscard]] const cgroup_chain& chain(cgroup_controller of) const noexcept {
        return chains_[static_cast<u8>(of)];
    }
    /// The memory limit in bytes. In cgroup v2 this is memory.max, or memory.high, above which the kernel
    /// slows the cgroup down. Page cache that the kernel can reclaim does not count as used. Returns nothing
    /// if no cgroup has a limit.
    [[nodiscard]] std::optional<cgroup_limit> memory() const;
    /// The limit of processes and threads. Returns nothing if no cgroup has a limit.
    [[nodiscard]] std::optional<cgroup_limit> pids() const;
    /// The smallest CPU quota. Returns nothing if no cgroup has a quota.
    [[nodiscard]] std::optional<cgroup_cpu_limit> cpu() const;
    /// The processors that the cgroup may use; its ancestors' restrictions are included. Returns nothing if
    /// no cgroup has a set.
    [[nodiscard]] std::optional<cgroup_cpu_set> cpu_set() const;
    /// Nanoseconds for which a CPU quota has throttled the cgroups. The time is summed over processors, so
    /// the difference between two readings may exceed the elapsed time. 0 if no cgroup has a quota.
    [[nodiscard]] u64 throttled_ns() const;
    /// Number of processes of the cgroup (in cgroup v2, including the cgroups below it) that the kernel's
    /// out-of-memory killer has ended. If the cgroup does not count such processes, returns their number on
    /// the entire machine. Returns nothing if neither number is known.
    [[nodiscard]] std::optional<u64> oom_kills() const;
    /// Returns true if the cgroup or one of its ancestors is frozen.
    [[nodiscard]] bool frozen() const;

private:
    std::string root_;
    cgroup_chain chains_[5];
    std::string unified_;  ///< the process's own cgroup v2 (its freezer needs no controller); empty if
                           ///< cgroup2 is not mounted
};

/// Number of threads that can compute concurrently: the smaller of two numbers, the processors in this
/// process's affinity mask and the CPU quota of its cgroups (rounded up). At least 1.
[[nodiscard]] unsigned usable_cores() noexcept;
/// The same as usable_cores(), but without considering the quota.
[[nodiscard]] unsigned affine_cores() noexcept;

}  // namespace carousel
