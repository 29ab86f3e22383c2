#pragma once
// The address of the dashboard: "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or a port alone. Two
// programs parse it: the command line refuses an invalid one before anything starts, the program that serves
// the dashboard binds to it.

#include <string>

#include "core/types.hpp"

namespace carousel {

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

}  // namespace carousel
