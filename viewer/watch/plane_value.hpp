#pragma once
// Converts one element of a plane to a number, for every element type.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "frame/frame_format.hpp"

namespace carousel::viewer {

[[nodiscard]] inline f64 half_value(u16 bits) noexcept {
    const int exponent = (bits >> 10U) & 31, mantissa = bits & 1023;
    const f64 sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return mantissa != 0 ? std::numeric_limits<f64>::quiet_NaN() : sign * HUGE_VAL;
    return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

/// FP8 E4M3: 4 bits of exponent, 3 of mantissa; no infinity, and one NaN of each sign.
[[nodiscard]] inline f64 e4m3_value(u8 bits) noexcept {
    const int exponent = (bits >> 3U) & 15, mantissa = bits & 7;
    const f64 sign = (bits & 0x80U) != 0 ? -1.0 : 1.0;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<f64>::quiet_NaN();
    return sign * (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(mantissa + 8, exponent - 10));
}

template <typename T>
[[nodiscard]] T bits_of(const std::byte* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// Calls `use` with a function that reads an element of this type: (const std::byte*) -> f64. One call covers
/// a whole plane, so that the type is not dispatched per element.
template <typename Use>
void with_reader(ring::element type, Use&& use) {
    using ring::element;
    const auto plain = [&use](auto zero) {
        using T = decltype(zero);
        use([](const std::byte* at) noexcept { return static_cast<f64>(bits_of<T>(at)); });
    };
    switch (type) {
        case element::u8_:
            return plain(u8{});
        case element::u16_:
            return plain(u16{});
        case element::u32_:
            return plain(u32{});
        case element::u64_:
            return plain(u64{});
        case element::i8_:
            return plain(i8{});
        case element::i16_:
            return plain(i16{});
        case element::i32_:
            return plain(i32{});
        case element::i64_:
            return plain(i64{});
        case element::f32_:
            return plain(f32{});
        case element::f64_:
            return plain(f64{});
        case element::bool_:
            return use([](const std::byte* at) noexcept { return *at != std::byte{0} ? 1.0 : 0.0; });
        case element::f8_e4m3_:
            return use([](const std::byte* at) noexcept { return e4m3_value(static_cast<u8>(*at)); });
        case element::f8_e5m2_:  // this is the upper half of an f16
            return use([](const std::byte* at) noexcept {
                return half_value(static_cast<u16>(static_cast<u32>(*at) << 8U));
            });
        case element::f16_:
            return use([](const std::byte* at) noexcept { return half_value(bits_of<u16>(at)); });
        case element::bf16_:
            return use([](const std::byte* at) noexcept {
                return static_cast<f64>(std::bit_cast<f32>(u32{bits_of<u16>(at)} << 16U));
            });
    }
}

[[nodiscard]] bool is_float(ring::element type) noexcept;
/// Returns the exact value: all digits of an integer; for a float, as few digits as distinguish it from its
/// neighbours.
[[nodiscard]] std::string value_text(ring::element type, const std::byte* at);

}  // namespace carousel::viewer
