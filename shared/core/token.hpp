#pragma once
// A secret that lets its bearer act: made at a start, printed once, compared in constant time.

#include <string>
#include <string_view>

namespace carousel {

/// 32 hexadecimal digits from the kernel's random numbers. Throws shm_error.
[[nodiscard]] std::string new_token();
/// Compares in a time that depends on the lengths alone. An empty token fits nothing.
[[nodiscard]] bool same_token(std::string_view given, std::string_view token) noexcept;

}  // namespace carousel
