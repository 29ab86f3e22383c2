#include "os/notify_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace carousel::supervisor {
namespace {

std::string_view variable(const char* name) noexcept {
    const char* text = std::getenv(name);
    return text != nullptr ? text : "";
}

std::optional<u64> number_of(std::string_view text) noexcept {
    u64 out = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return out;
}

/// WATCHDOG_PID names the process that must send the messages. Another process can also inherit the
/// variables, and must then send no messages.
u64 watchdog_of_environment() noexcept {
    const std::string_view pid = variable("WATCHDOG_PID");
    if (!pid.empty() && number_of(pid) != static_cast<u64>(::getpid())) return 0;
    constexpr u64 longest_us = u64{365} * 24 * 3600 * 1'000'000;
    return std::min(number_of(variable("WATCHDOG_USEC")).value_or(0), longest_us) * 1000;
}

}  // namespace

notify_socket::notify_socket(std::string_view address) : address_(address) {
    const bool is_address = address_.starts_with('/') || (address_.starts_with('@') && address_.size() > 1);
    if (!is_address || address_.size() > sizeof sockaddr_un::sun_path) return;
    if (address_.front() == '@') address_.front() = '\0';
    socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

notify_socket notify_socket::of_environment() {
    notify_socket out(variable("NOTIFY_SOCKET"));
    if (out.is_open()) out.watchdog_ns_ = watchdog_of_environment();
    return out;
}

// The socket is not connected, because the manager may restart and bind its socket again.
bool notify_socket::send(std::string_view lines) const noexcept {
    if (!socket_) return false;
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, address_.data(), address_.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
    ssize_t n = -1;
    do {
        n = ::sendto(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
                     reinterpret_cast<const sockaddr*>(&to), length);
    } while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(lines.size());
}

}  // namespace carousel::supervisor
