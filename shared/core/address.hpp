#pragma once
// Numeric network addresses: the addresses at which a program listens, and the check whether an address is
// private.

#include <string>

#include "core/types.hpp"

namespace carousel {

// The address of the dashboard: "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or a port alone. Two
// programs parse this text: the command line refuses an invalid address before any process is started; the
// program that serves the dashboard listens at the address.

struct http_address {
    std::string host = "127.0.0.1";  ///< an IP address without brackets, or "localhost"
    u16 port = 8080;                 ///< 0: any free port
    /// Returns true if only this machine can reach the address.
    [[nodiscard]] bool is_loopback() const noexcept;
    /// "127.0.0.1:8080", "[::1]:8080".
    [[nodiscard]] std::string text() const;
};

/// Throws config_error if the text is not an address or port.
[[nodiscard]] http_address parse_http_address(const std::string& text);
/// Throws config_error unless `name` can be the name of a machine in the URL of the dashboard: letters,
/// digits, hyphens, underscores and dots, without a port.
void check_http_host(const std::string& name);

// Checks whether numeric IPv4 addresses are private. By default, links and the supervisors of several hosts
// listen only at private addresses.

/// Returns true for four numbers like "10.0.0.2", except 0.0.0.0, which stands for all addresses of a host.
[[nodiscard]] bool is_host_address(const std::string& text) noexcept;
/// Returns true for addresses in 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16 and 127/8.
[[nodiscard]] bool is_private_address(const std::string& text) noexcept;

}  // namespace carousel
