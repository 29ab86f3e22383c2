#pragma once
// A unique process identity: pids are reused, (pid, start time) is not. No process is ever signalled by its
// pid alone.

#include <string>

#include "core/types.hpp"

namespace carousel::shm {

struct process_id {
    i32 pid = 0;
    u64 start_time = 0;  ///< clock ticks since boot, field 22 of /proc/PID/stat
    bool operator==(const process_id&) const = default;
};

/// Returns the start time of a process; 0 if there is no such process.
[[nodiscard]] u64 start_time_of(i32 pid) noexcept;
/// Start time of the process that `pidfd` refers to and that has this pid; 0 after it has been reaped,
/// because the pid may then belong to another process.
[[nodiscard]] u64 start_time_of(int pidfd, i32 pid) noexcept;
[[nodiscard]] process_id this_process() noexcept;
/// Returns false if the pid does not exist, belongs to a later process, or is a zombie.
[[nodiscard]] bool is_alive(const process_id& id) noexcept;
/// Opens a pidfd for exactly this process; -1 if it has ended (errno ESRCH) or the call is refused. CLOEXEC.
[[nodiscard]] int open_pidfd(const process_id& id) noexcept;
/// Returns true if the process that the pidfd refers to has ended.
[[nodiscard]] bool has_ended(int pidfd) noexcept;
/// Sends a signal through a pidfd. Returns 0 or errno.
int signal_pidfd(int pidfd, int signal) noexcept;
/// Resident memory in bytes; 0 if unknown.
[[nodiscard]] u64 resident_bytes(i32 pid) noexcept;
/// Returns true if the process is stopped by a signal (state T) or its control group is frozen.
[[nodiscard]] bool is_stopped(i32 pid) noexcept;

}  // namespace carousel::shm
