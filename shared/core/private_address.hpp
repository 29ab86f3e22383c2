#pragma once
// Checks whether numeric IPv4 addresses are private: by default links and the supervisors of several hosts
// listen on private addresses only.

#include <string>

namespace carousel {

/// Returns true for four numbers like "10.0.0.2", except 0.0.0.0, which stands for all addresses of a host.
[[nodiscard]] bool is_host_address(const std::string& text) noexcept;
/// Returns true for addresses in 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16 and 127/8.
[[nodiscard]] bool is_private_address(const std::string& text) noexcept;

}  // namespace carousel
