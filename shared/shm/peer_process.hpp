#pragma once
// The process at the other end of a unix socket, identified by a pidfd. SO_PEERCRED returns the pid that the
// peer had when it connected; by the time of the lookup that pid may belong to another process. Therefore a
// pidfd of exactly this process is requested from the kernel (SO_PEERPIDFD, Linux 6.5). On an older kernel
// the peer reports its start time in its first message, and the pid is opened only if the process that now
// has the pid has this start time.

#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::shm {

struct peer_process {
    process_id id;    ///< pid 0: the process is in a pid namespace that is not visible from here
    unique_fd pidfd;  ///< empty: the process has ended (errno ESRCH), or no pidfd is available
};

/// `reported_start_time`: from the peer's message; 0: the peer has sent none, which is the case for a
/// listener. With an older kernel the pid is then accepted as the peer's if the connection is still open
/// after the pidfd was opened: a process's descriptors are closed before its pid becomes free, unless another
/// process shares them. Any thread.
[[nodiscard]] peer_process peer_process_of(int socket, u64 reported_start_time) noexcept;
/// The same without SO_PEERPIDFD.
[[nodiscard]] peer_process peer_process_by_start_time(int socket, u64 reported_start_time) noexcept;

}  // namespace carousel::shm
