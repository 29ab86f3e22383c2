#pragma once
// Which numeric IPv4 addresses are of a private network: links and the supervisors of several hosts listen on
// no others unless they are told to.

#include <string>

namespace carousel {

/// "10.0.0.2": four numbers, and not 0.0.0.0, which is every address that a host has.
[[nodiscard]] bool is_host_address(const std::string& text) noexcept;
/// 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16 and 127/8.
[[nodiscard]] bool is_private_address(const std::string& text) noexcept;

}  // namespace carousel
