#pragma once
// The connection to the service manager that started this process, as in sd_notify(3): one datagram per
// message, of lines NAME=VALUE. Never blocks; one thread.

#include <string>
#include <string_view>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// The environment variables that contain a service manager's address and how often it expects messages.
/// Child processes must not inherit them.
inline constexpr const char* notify_variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

class notify_socket {
public:
    /// Makes an object without a service manager; send() then does nothing.
    notify_socket() = default;
    /// `address`: a path, or '@' and the name of an abstract socket. If the address has neither form, or is
    /// too long, the object has no service manager.
    explicit notify_socket(std::string_view address);
    /// Makes the object from the environment variables.
    [[nodiscard]] static notify_socket of_environment();

    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(socket_); }
    /// Returns false if the message was not accepted because the receiver's queue is full or the receiver has
    /// ended.
    bool send(std::string_view lines) const noexcept;
    /// Returns the longest permitted time between two messages WATCHDOG=1; 0: the service manager expects
    /// none.
    [[nodiscard]] u64 watchdog_ns() const noexcept { return watchdog_ns_; }

private:
    shm::unique_fd socket_;
    std::string address_;  ///< as in sockaddr_un::sun_path: an abstract name begins with a zero byte
    u64 watchdog_ns_ = 0;
};

}  // namespace carousel::supervisor
