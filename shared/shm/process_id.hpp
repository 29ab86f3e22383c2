#pragma once
// A process named for good: pids are used again, (pid, start time) is not. No process is ever signalled by
// bare pid.

#include <string>

#include "core/types.hpp"

namespace carousel::shm {

struct process_id {
    i32 pid = 0;
    u64 start_time = 0;  ///< clock ticks since boot, field 22 of /proc/PID/stat
    bool operator==(const process_id&) const = default;
};

/// Start time of a process, 0 when there is none.
[[nodiscard]] u64 start_time_of(i32 pid) noexcept;
/// Start time of the process that `pidfd` pins and whose pid this is; 0 once it has been reaped, since the
/// number may be another process's then.
[[nodiscard]] u64 start_time_of(int pidfd, i32 pid) noexcept;
[[nodiscard]] process_id this_process() noexcept;
/// False when the pid is gone, belongs to a later process, or is a zombie.
[[nodiscard]] bool is_alive(const process_id& id) noexcept;
/// Opens a pidfd for exactly this process; -1 when it is gone (errno ESRCH) or refused. CLOEXEC.
[[nodiscard]] int open_pidfd(const process_id& id) noexcept;
/// True when the process that the pidfd pins has ended.
[[nodiscard]] bool has_ended(int pidfd) noexcept;
/// Sends a signal through a pidfd. 0 or errno.
int signal_pidfd(int pidfd, int signal) noexcept;
/// Resident memory in bytes, 0 when unknown.
[[nodiscard]] u64 resident_bytes(i32 pid) noexcept;
/// True when the process is stopped by a signal (state T), or its control group is frozen.
[[nodiscard]] bool is_stopped(i32 pid) noexcept;

}  // namespace carousel::shm
