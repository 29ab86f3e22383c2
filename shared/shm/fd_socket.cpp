#include "shm/fd_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"

namespace carousel::shm {

static_assert(max_message <= json_channel::message.bytes, "every message that is accepted can be parsed");

void unique_fd::reset(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

namespace {

bool would_block(int error_number) noexcept { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

/// Returns true if a failed call must be repeated: after EINTR, or, if the call would have blocked, after
/// `event` has occurred before the deadline.
bool restart(int socket, short event, u64 deadline_ns) noexcept {
    const int why = errno;
    if (why == EINTR) return true;
    const bool again =
        would_block(why) && now_ns() < deadline_ns && events_of(socket, event, deadline_ns) != 0;
    errno = why;
    return again;
}

u64 deadline_after(u64 timeout_ns) noexcept { return timeout_ns > 0 ? now_ns() + timeout_ns : 0; }

}  // namespace

bool send_message(int socket, const std::string& text, const std::vector<int>& fds, u64 timeout_ns) noexcept {
    if (text.size() > max_message || fds.size() > max_fds) {
        errno = EMSGSIZE;
        return false;
    }
    iovec part{const_cast<char*>(text.data()), text.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_fds)];
    if (!fds.empty()) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr* c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
    }
    const u64 deadline = deadline_after(timeout_ns);
    ssize_t sent = 0;
    do {
        sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && restart(socket, POLLOUT, deadline));
    return sent == static_cast<ssize_t>(text.size());
}

receive_status receive_message(int socket, message& out, u64 timeout_ns) {
    const u64 deadline = deadline_after(timeout_ns);
    out.text.resize(max_message);
    out.fds.clear();
    iovec part{out.text.data(), out.text.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_fds)];
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t got = 0;
    do {
        got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (got < 0 && restart(socket, POLLIN, deadline));
    if (got < 0) {
        out.text.clear();
        if (would_block(errno)) return receive_status::would_block;
        return errno == ECONNRESET ? receive_status::closed : receive_status::failed;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            out.fds.emplace_back(fd);
        }
    }
    out.text.resize(static_cast<std::size_t>(got));
    if (got == 0 && out.fds.empty()) return receive_status::closed;
    if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        errno = EMSGSIZE;
        return receive_status::failed;
    }
    return receive_status::ok;
}

namespace {
sockaddr_un address_of(const std::string& path) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    if (path.size() >= sizeof a.sun_path)
        throw shm_error(
            fmt::format("the socket path {} is longer than {} characters: choose a shorter pipeline name or "
                        "XDG_RUNTIME_DIR",
                        path, sizeof a.sun_path - 1));
    path.copy(a.sun_path, sizeof a.sun_path - 1);
    return a;
}

// connect() waits while the listener's queue is full; SO_SNDTIMEO bounds this wait. A signal ends the wait
// before the kernel has made a connection, so the call can be repeated with the remaining time.
bool connect_until(int socket, const sockaddr_un& to, u64 deadline_ns) noexcept {
    for (;;) {
        const u64 now = now_ns(), left = std::max(deadline_ns > now ? deadline_ns - now : 0, ns_per_us);
        const timeval limit{static_cast<time_t>(left / ns_per_s),
                            static_cast<suseconds_t>(left % ns_per_s / ns_per_us)};
        ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
        if (errno != EINTR) return false;
        if (now_ns() < deadline_ns) continue;
        errno = EAGAIN;
        return false;
    }
}
}  // namespace

unique_fd listen_at(const std::string& path) {
    const sockaddr_un a = address_of(path);
    ::unlink(path.c_str());
    unique_fd s(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // Linux gives the socket's file the mode that the socket has when it is bound. A umask would have the
    // same effect, but it applies to the whole process, whose other threads may be creating files.
    if (!s || ::fchmod(s.get(), S_IRUSR | S_IWUSR) != 0 ||
        ::bind(s.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0 || ::listen(s.get(), 64) != 0)
        throw shm_error(fmt::format("listening at {}: {}", path, errno_text(errno)));
    return s;
}

unique_fd connect_to(const std::string& path, u64 timeout_ns) {
    const sockaddr_un a = address_of(path);
    unique_fd s(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (s && !connect_until(s.get(), a, now_ns() + timeout_ns)) {
        const int why = errno;
        s.reset();
        errno = why;
    }
    // Another user may have created the folder under /tmp first, so a listener that belongs to another user
    // is refused: it is not a supervisor of this user.
    if (s && peer_of(s.get()).uid != ::getuid()) {
        s.reset();
        errno = EPERM;
    }
    return s;
}

std::pair<unique_fd, unique_fd> socket_pair() {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw shm_error("creating a socket pair: " + errno_text(errno));
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

peer peer_of(int socket) noexcept {
    ucred c{};
    socklen_t size = sizeof c;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &c, &size) != 0) return {};
    return {c.pid, c.uid};
}

}  // namespace carousel::shm
