#pragma once
// Where a page is served: "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or a port alone. Read in two
// programs: the command line refuses what is wrong before anything starts, the program that serves binds it.

#include <string>

#include "core/types.hpp"

namespace carousel {

struct http_address {
    std::string host = "127.0.0.1";  ///< an IP address without brackets, or "localhost"
    u16 port = 8080;                 ///< 0: any that is free
    /// Only this machine can reach it.
    [[nodiscard]] bool is_loopback() const noexcept;
    /// "127.0.0.1:8080", "[::1]:8080".
    [[nodiscard]] std::string text() const;
};

/// Throws config_error: what was given, what is expected.
[[nodiscard]] http_address parse_http_address(const std::string& text);
/// Throws config_error unless `name` can be the name of a machine, as in the address of a page: letters,
/// digits, hyphens and dots, without a port.
void check_http_host(const std::string& name);

}  // namespace carousel
