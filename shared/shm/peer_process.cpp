#include "shm/peer_process.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "core/io.hpp"

namespace carousel::shm {
namespace {

constexpr int so_peerpidfd = 77;  // SO_PEERPIDFD: not in the system headers of 2023

/// Returns -1 with errno: ENOPROTOOPT before Linux 6.5.
unique_fd kernel_pidfd(int socket) noexcept {
    int fd = -1;
    socklen_t size = sizeof fd;
    return unique_fd(::getsockopt(socket, SOL_SOCKET, so_peerpidfd, &fd, &size) == 0 ? fd : -1);
}

}  // namespace

peer_process peer_process_of(int socket, u64 reported_start_time) noexcept {
    peer_process p;
    p.pidfd = kernel_pidfd(socket);
    if (!p.pidfd && errno == ENOPROTOOPT) return peer_process_by_start_time(socket, reported_start_time);
    p.id.pid = peer_of(socket).pid;
    if (p.pidfd && p.id.pid > 0) p.id.start_time = start_time_of(p.pidfd.get(), p.id.pid);
    if (!p.pidfd || has_ended(p.pidfd.get())) {
        p.pidfd.reset();
        errno = ESRCH;
    }
    return p;
}

peer_process peer_process_by_start_time(int socket, u64 reported_start_time) noexcept {
    peer_process p;
    p.id = {peer_of(socket).pid, reported_start_time};
    if (p.id.pid <= 0) return p;
    if (reported_start_time != 0) {
        p.pidfd.reset(open_pidfd(p.id));
        return p;
    }
    p.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, p.id.pid, 0)));
    if (p.pidfd) p.id.start_time = start_time_of(p.pidfd.get(), p.id.pid);
    if (p.id.start_time != 0 && (events_of(socket, POLLRDHUP) & (POLLHUP | POLLRDHUP | POLLERR)) == 0)
        return p;
    p.pidfd.reset();
    errno = ESRCH;
    return p;
}

}  // namespace carousel::shm
