#pragma once
// Datagrams with file descriptors over a unix SOCK_SEQPACKET socket: passes ring memory to stages and detects
// the death of a peer (EOF). All fds are CLOEXEC. A message is at most max_message bytes of text and max_fds
// fds; a longer one is an error and is not truncated.

#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/types.hpp"

namespace carousel::shm {

/// Owns one file descriptor.
class unique_fd {
public:
    unique_fd() = default;
    explicit unique_fd(int fd) noexcept : fd_(fd) {}
    unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    unique_fd(const unique_fd&) = delete;
    unique_fd& operator=(const unique_fd&) = delete;
    ~unique_fd() { reset(); }
    void reset(int fd = -1) noexcept;
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_ = -1;
};

inline constexpr std::size_t max_message = 200 * 1024;
inline constexpr std::size_t max_fds = 250;  ///< the kernel's limit is 253

struct message {
    std::string text;
    std::vector<unique_fd> fds;
};

enum class receive_status { ok, would_block, closed, failed };

/// Sends one message. Returns false with errno if the peer has closed (never raises SIGPIPE), the socket is
/// full (EAGAIN) or the message is too large (EMSGSIZE). With timeout_ns > 0 waits up to that time for room;
/// otherwise does not wait.
bool send_message(int socket, const std::string& text, const std::vector<int>& fds = {},
                  u64 timeout_ns = 0) noexcept;
/// Receives one message; with timeout_ns > 0 waits up to that time; otherwise does not wait. `failed` leaves
/// errno. Signals shorten neither wait.
receive_status receive_message(int socket, message& out, u64 timeout_ns = 0);

/// Returns a listening socket at `path` (mode 0600), nonblocking. Throws shm_error.
[[nodiscard]] unique_fd listen_at(const std::string& path);
/// Connects. Returns an empty descriptor with errno if no process listens, a process of another user listens
/// (EPERM), or the listener has not accepted within `timeout_ns` (EAGAIN). Throws shm_error if the path is
/// too long.
[[nodiscard]] unique_fd connect_to(const std::string& path, u64 timeout_ns = 10 * ns_per_s);
/// A connected pair. Throws shm_error.
[[nodiscard]] std::pair<unique_fd, unique_fd> socket_pair();

struct peer {
    i32 pid = 0;
    u32 uid = 0;
};
/// Returns the pid and uid that the peer had when it connected (SO_PEERCRED); zeros on failure.
[[nodiscard]] peer peer_of(int socket) noexcept;

}  // namespace carousel::shm
