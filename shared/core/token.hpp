#pragma once
// A secret that authorises its holder: created at a start, printed once, compared in constant time.

#include <string>
#include <string_view>

namespace carousel {

/// Returns 32 hexadecimal digits from the kernel's random numbers. Throws shm_error.
[[nodiscard]] std::string new_token();
/// Compares in a time that depends only on the lengths. An empty token matches nothing.
[[nodiscard]] bool same_token(std::string_view given, std::string_view token) noexcept;

}  // namespace carousel
