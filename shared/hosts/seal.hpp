#pragma once
// HMAC-SHA256 (libcrypto), for what the supervisors and the links of several hosts say to each other. A build
// without libcrypto has none, and can't run a pipeline over several hosts.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::hosts {

using seal_bytes = std::array<u8, 32>;

/// False: built without libcrypto; the others throw config_error then.
[[nodiscard]] bool can_seal() noexcept;
/// Of all parts behind each other.
[[nodiscard]] seal_bytes seal(std::string_view key, std::initializer_list<std::string_view> parts);
/// In a time that depends on nothing secret.
[[nodiscard]] bool same_seal(const seal_bytes& a, std::string_view b);
/// Fresh, from the kernel's random numbers.
[[nodiscard]] seal_bytes fresh_bytes();
[[nodiscard]] inline std::string_view view_of(const seal_bytes& b) noexcept {
    return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace carousel::hosts
