#pragma once
// Identifies processes: by pid and start time, as the peer of a socket, by a mark in their environment, or as
// members of a run.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::shm {

// A unique process identity: pids are reused, (pid, start time) is not. No process is ever signalled by its
// pid alone.

struct process_id {
    i32 pid = 0;
    u64 start_time = 0;  ///< clock ticks since boot, field 22 of /proc/PID/stat
    bool operator==(const process_id&) const = default;
};

/// Returns the start time of a process; 0 if there is no such process.
[[nodiscard]] u64 start_time_of(i32 pid) noexcept;
/// Start time of the process that `pidfd` refers to; `pid` is the pid of that process. Returns 0 after the
/// process has been reaped, because the pid may then belong to another process.
[[nodiscard]] u64 start_time_of(int pidfd, i32 pid) noexcept;
[[nodiscard]] process_id this_process() noexcept;
/// Returns false if the pid does not exist, belongs to a later process, or is a zombie.
[[nodiscard]] bool is_alive(const process_id& id) noexcept;
/// Opens a pidfd for exactly this process; -1 if it has ended (errno ESRCH), or if that can't be found out.
/// CLOEXEC.
[[nodiscard]] int open_pidfd(const process_id& id) noexcept;
/// Returns true if the process that the pidfd refers to has ended.
[[nodiscard]] bool has_ended(int pidfd) noexcept;
/// Sends a signal through a pidfd. Returns 0 or errno.
int signal_pidfd(int pidfd, int signal) noexcept;
/// The environment of exactly this process, as strings that each end with a 0; "" if it has ended or its
/// environment can't be read.
[[nodiscard]] std::string environment_of(const process_id& id);
/// Resident memory in bytes; 0 if unknown.
[[nodiscard]] u64 resident_bytes(i32 pid) noexcept;
/// Returns true if the process is stopped by a signal (state T) or its control group is frozen.
[[nodiscard]] bool is_stopped(i32 pid) noexcept;

// The process at the other end of a unix socket, identified by a pidfd. SO_PEERCRED returns the pid that the
// peer had when it connected; by the time of the lookup that pid may belong to another process. Therefore a
// pidfd of exactly this process is requested from the kernel (SO_PEERPIDFD, Linux 6.5). On an older kernel
// the peer reports its start time in its first message, and the pid is opened only if the process that now
// has the pid has this start time.

struct peer_process {
    process_id id;    ///< pid 0: the process is in a pid namespace that is not visible from here
    unique_fd pidfd;  ///< empty: the process has ended (errno ESRCH), or no pidfd is available
};

/// `reported_start_time`: from the peer's message; 0: the peer has sent none, as is the case for a listener.
/// On an older kernel, a pid without a start time is accepted as the pid of the peer if the connection is
/// still open after the pidfd was opened. The reason is that the descriptors of a process are closed before
/// its pid becomes free, unless another process shares them. Any thread.
[[nodiscard]] peer_process peer_process_of(int socket, u64 reported_start_time) noexcept;
/// The same without SO_PEERPIDFD.
[[nodiscard]] peer_process peer_process_by_start_time(int socket, u64 reported_start_time) noexcept;

// Finds processes that an earlier process has started: they have NAME=VALUE in their environment. Used for
// helpers that detach themselves (daemons) and therefore have no parent in the run. The value is the run's
// runtime directory, so the search needs no pid file, which could be out of date.
// May be called from any process and any thread. Reads /proc; only processes of this user are visible. A
// child of a marked process counts as marked even if its environment does not show the mark.

/// The mark of all MPS daemons and servers of a run: CAROUSEL_MPS_DOMAIN=FOLDER.
[[nodiscard]] std::string mps_mark(const std::string& folder);
/// The mark of one of these daemons and servers, given by the folder of its sockets:
/// CAROUSEL_MPS_PART=FOLDER.
[[nodiscard]] std::string mps_part_mark(const std::string& folder);
/// Folder of a run's MPS domain (its unix sockets), inside the run's runtime directory.
[[nodiscard]] std::string mps_folder(const std::string& runtime_directory);

/// Returns the marked processes that are alive, except this process. `assignment` is NAME=VALUE.
[[nodiscard]] std::vector<process_id> marked_processes(const std::string& assignment);
/// Sends SIGKILL to the marked processes and waits until they have ended, at most `timeout_ns`. Returns true
/// if none is left.
bool end_marked_processes(const std::string& assignment, u64 timeout_ns) noexcept;

// Determines whether a process belongs to a run, for cases in which the control block alone does not show
// this. A process claims an entry by one CAS and stores its start time after the CAS. A process that pauses
// or dies between these two steps is identified by its memory mappings.

/// Returns whether the process maps a file whose path contains `name`.
[[nodiscard]] bool maps_file(i32 pid, const std::string& name);
/// Returns whether the process maps the control block of that run.
[[nodiscard]] bool maps_run(i32 pid, const std::string& run_id);
/// Returns a pidfd of the process that an entry names; start time 0 means that the start time is not stored
/// yet. Empty if the process has ended or the pid belongs to a process outside the run.
[[nodiscard]] unique_fd open_member(process_id id, const std::string& run_id);

}  // namespace carousel::shm
