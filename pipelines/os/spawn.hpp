#pragma once
// Starts a stage's process: posix_spawn with every fd CLOEXEC, in a process group of its own, and a pidfd
// opened at once (it can't be another process's: an unreaped child keeps its pid).

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {

/// Splits a command line as a shell would: blanks, '...', "..." and backslashes; no expansion. Throws
/// config_error on an open quote.
[[nodiscard]] std::vector<std::string> split_words(const std::string& text);

struct spawn_request {
    std::vector<std::string> argv;         ///< argv[0] is the program's path, or a name to be found in PATH
    std::vector<std::string> environment;  ///< "NAME=value", added to or replacing our own
    int input = -1;                        ///< becomes stdin; -1: /dev/null
    int output = -1;                       ///< becomes stdout and stderr; -1: ours
    int extra_fd = -1;                     ///< handed on as fd 3; -1: none
    bool interactive = false;              ///< keeps our stdin and process group (a debugger at a terminal)
};
struct spawned {
    i32 pid = 0;
    u64 start_time = 0;
    shm::unique_fd pidfd;
};
/// The child's signals are unblocked; those that this program was started to ignore stay ignored, except
/// SIGINT and SIGTERM of a child that is not interactive.
/// Throws config_error when the program can't be started (which, why, what to do), and out_of_resources where
/// no process, descriptor or memory is left for it.
[[nodiscard]] spawned spawn(const spawn_request& request);

/// The same, but waits while processes, descriptors or memory are short, for up to shortage_patience_ns.
/// Blocks: for use while no run is under way. Throws out_of_resources after that.
[[nodiscard]] spawned spawn_when_possible(const spawn_request& request);

/// Lets the kernel's out-of-memory killer choose the process before this one, which supervises it: raises its
/// oom_score_adj by 100 (as if it used 10 % more of the memory). One that is higher already, or may not be
/// written, remains.
void raise_oom_score(i32 pid) noexcept;

/// How a child ended. Empty `known`: not our child, or not ended.
struct exit_status {
    bool known = false;
    int exit_code = 0, signal = 0;
};
/// Reaps the child behind a readable pidfd.
[[nodiscard]] exit_status reap(int pidfd) noexcept;
/// True when the kernel is taking the process down, or has: its files are closed then, and nothing of it runs
/// any more.
[[nodiscard]] bool is_exiting(i32 pid) noexcept;
using shm::has_ended;

}  // namespace carousel::supervisor
