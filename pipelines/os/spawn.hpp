#pragma once
// Starts and reaps the children of this process, and reaps orphans that become children of this process.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {

// Starts a stage's process by posix_spawn, with every fd CLOEXEC and in its own process group. A pidfd is
// opened at once; the pidfd can't refer to another process, because an unreaped child keeps its pid.

struct spawn_request {
    std::vector<std::string> argv;         ///< argv[0]: the program's path, or a name to search in PATH
    std::vector<std::string> environment;  ///< "NAME=value", added to or replacing this process's environment
    int input = -1;                        ///< becomes stdin; -1: /dev/null
    int output = -1;                       ///< becomes stdout and stderr; -1: inherited
    int extra_fd = -1;                     ///< passed as fd 3; -1: none
    bool interactive = false;  ///< the child keeps this process's stdin and process group (for a debugger)
};
struct spawned {
    i32 pid = 0;
    u64 start_time = 0;
    shm::unique_fd pidfd;
};
/// No signals are blocked in the child. Signals that were ignored when this program started stay ignored,
/// except SIGINT and SIGTERM if the child is not interactive. Throws config_error if the program can't be
/// started (the message has the program, the reason and a remedy), and out_of_resources if no process,
/// descriptor or memory is left.
[[nodiscard]] spawned spawn(const spawn_request& request);

/// Like spawn(), but retries for up to shortage_patience_ns while no process, descriptor or memory is
/// available, and throws out_of_resources only after that time. This function blocks, so it is used only
/// while no run is in progress.
[[nodiscard]] spawned spawn_when_possible(const spawn_request& request);

/// Makes the kernel's out-of-memory killer choose the process `pid` rather than its supervisor (the caller):
/// raises the process's oom_score_adj by 100 (as if it used 10 % more of the memory). A value that is already
/// higher, or can't be written, is left unchanged.
void raise_oom_score(i32 pid) noexcept;

/// How a child ended. `known` is false if the process is not a child of this process, or if it has not ended.
struct exit_status {
    bool known = false;
    int exit_code = 0, signal = 0;
};
/// Reaps the child of a readable pidfd.
[[nodiscard]] exit_status reap(int pidfd) noexcept;
/// Returns true if the kernel is terminating the process, or has terminated it: in both cases none of its
/// code runs any more.
[[nodiscard]] bool is_exiting(i32 pid) noexcept;
using shm::has_ended;

// Children of this process: those that its own code starts and reaps, and orphans.
// The kernel reparents processes whose parent has ended to PID 1 of the PID namespace, or to the nearest
// child subreaper. A supervisor that has one of these roles (e.g. the first process of a container) reaps
// them here, because their entries in the process table would otherwise remain for the length of the run. The
// exit status of a child that other code waits for is never taken, because all such children are registered
// when they start. Any thread may call these functions.

/// Calls `start`, which returns an error number (0: success) and sets `pid`, and registers the child. A child
/// that ends at once cannot be mistaken for an orphan.
int start_child(pid_t& pid, const std::function<int()>& start);
/// To be called when the code that started the child has reaped it.
void forget_child(pid_t pid) noexcept;

/// Returns true if orphans of other processes become children of this process.
[[nodiscard]] bool inherits_orphans() noexcept;
/// Reaps each ended child that start_child() has not registered and that is not `known`. Doesn't block.
/// Returns the number of reaped children.
u32 reap_orphans(const std::function<bool(pid_t)>& known);

}  // namespace carousel::supervisor
