#pragma once
// The process at the other end of a unix socket, pinned. SO_PEERCRED has its pid from the time at which it
// connected; by the time that the pid is looked up it may be another process's. So the kernel is asked for a
// pidfd of that very process (SO_PEERPIDFD, Linux 6.5). On an older kernel the peer reports its start time in
// its first message, and the pid is opened only if the process that has it now started then.

#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::shm {

struct peer_process {
    process_id id;    ///< pid 0: of a pid namespace that is not visible from here
    unique_fd pidfd;  ///< empty: it has ended (errno ESRCH), or can't be pinned
};

/// `reported_start_time`: from its message; 0: it has sent none, as a listener has not. Then an older
/// kernel's pid is taken for the peer's if the connection still stands once the pid is pinned: its
/// descriptors close before its pid is free, unless another process shares them. Any thread.
[[nodiscard]] peer_process peer_process_of(int socket, u64 reported_start_time) noexcept;
/// The same without SO_PEERPIDFD.
[[nodiscard]] peer_process peer_process_by_start_time(int socket, u64 reported_start_time) noexcept;

}  // namespace carousel::shm
