#pragma once
// The connection to the service manager that started this process, as in sd_notify(3): one datagram per
// message, of lines NAME=VALUE. Never blocks; one thread.

#include <string>
#include <string_view>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// The variables by which a service manager states where and how often it wants messages. Child processes
/// must not inherit them.
inline constexpr const char* notify_variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

class notify_socket {
public:
    /// No service manager: send() does nothing.
    notify_socket() = default;
    /// `address`: a path, or '@' and the name of an abstract socket. An address that is neither, or is too
    /// long, counts as no service manager.
    explicit notify_socket(std::string_view address);
    /// As the environment states.
    [[nodiscard]] static notify_socket of_environment();

    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(socket_); }
    /// Returns false if the message was not accepted because the receiver's queue is full or the receiver has
    /// ended.
    bool send(std::string_view lines) const noexcept;
    /// WATCHDOG=1 must be sent at least this often; 0: not at all.
    [[nodiscard]] u64 watchdog_ns() const noexcept { return watchdog_ns_; }

private:
    shm::unique_fd socket_;
    std::string address_;  ///< as in sockaddr_un::sun_path: an abstract name begins with a zero byte
    u64 watchdog_ns_ = 0;
};

}  // namespace carousel::supervisor
