#pragma once
// HMAC-SHA256 (libcrypto, loaded at its first use), for messages between the supervisors and the links of
// several hosts. If libcrypto is missing at build time or on this machine, pipelines cannot run over several
// hosts.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::hosts {

using seal_bytes = std::array<u8, 32>;

/// Returns false if built without libcrypto or if it is not installed; seal() then throws config_error.
[[nodiscard]] bool can_seal() noexcept;
/// HMAC-SHA256 of the concatenated parts. Throws shm_error if libcrypto fails.
[[nodiscard]] seal_bytes seal(std::string_view key, std::initializer_list<std::string_view> parts);
/// Compares in constant time.
[[nodiscard]] bool same_seal(const seal_bytes& a, std::string_view b);
/// New bytes from the kernel's random numbers. Throws shm_error.
[[nodiscard]] seal_bytes fresh_bytes();
[[nodiscard]] inline std::string_view view_of(const seal_bytes& b) noexcept {
    return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace carousel::hosts
