#pragma once
// The integer and floating-point names used throughout. The sizes are part of the layout: most of these
// values are fields of words in shared memory.

#include <cstddef>
#include <cstdint>
#include <limits>

namespace carousel {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

// Arithmetic on sizes from an untrusted source, such as a client, a file or a message. A result that does not
// fit 64 bits becomes the largest number (saturation, as std::add_sat of C++26), which every limit check
// refuses. Plain arithmetic would wrap to a small number that passes the check.

[[nodiscard]] constexpr u64 add_sat(u64 a, u64 b) noexcept {
    u64 sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<u64>::max() : sum;
}

[[nodiscard]] constexpr u64 mul_sat(u64 a, u64 b) noexcept {
    u64 product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<u64>::max() : product;
}

/// Returns the number of parts of `step` bytes (not 0) needed for `n` bytes.
[[nodiscard]] constexpr u64 div_ceil(u64 n, u64 step) noexcept { return n / step + (n % step == 0 ? 0 : 1); }

/// The smallest multiple of `step` (not 0) that is not smaller than `n`.
[[nodiscard]] constexpr u64 round_up_sat(u64 n, u64 step) noexcept {
    return mul_sat(div_ceil(n, step), step);
}

/// Returns true if `bytes` bytes at `offset` are within the first `size` bytes.
[[nodiscard]] constexpr bool is_within(u64 offset, u64 bytes, u64 size) noexcept {
    return offset <= size && bytes <= size - offset;
}

}  // namespace carousel
