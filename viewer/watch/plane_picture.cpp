#include "viewer/watch/plane_picture.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace carousel::viewer {
namespace {

using ring::element;

std::optional<plane_picture> as_picture(const ring::plane& p) {
    if (p.shape.size() < 2 || p.shape.size() > 3 || !p.strides.empty()) return std::nullopt;
    plane_picture out{p, 0, 0, p.shape.size() == 3 ? static_cast<u32>(std::min<u64>(p.shape[2], 5)) : 1};
    if (p.shape[0] < 2 || p.shape[1] < 2 || p.shape[0] > 16384 || p.shape[1] > 16384) return std::nullopt;
    out.height = static_cast<u32>(p.shape[0]);
    out.width = static_cast<u32>(p.shape[1]);
    const bool bytes = p.type == element::u8_ && (out.channels == 3 || out.channels == 4);
    return out.channels == 1 || bytes ? std::optional(out) : std::nullopt;
}

f64 half_value(u16 bits) noexcept {
    const int exponent = (bits >> 10U) & 31, mantissa = bits & 1023;
    const f64 sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return mantissa != 0 ? std::numeric_limits<f64>::quiet_NaN() : sign * HUGE_VAL;
    return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

/// 4 bits of exponent, 3 of mantissa; no infinity, and one NaN of each sign.
f64 e4m3_value(u8 bits) noexcept {
    const int exponent = (bits >> 3U) & 15, mantissa = bits & 7;
    const f64 sign = (bits & 0x80U) != 0 ? -1.0 : 1.0;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<f64>::quiet_NaN();
    return sign * (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(mantissa + 8, exponent - 10));
}

template <typename T>
T bits_of(const std::byte* from, u64 k) noexcept {
    T value;
    std::memcpy(&value, from + k * sizeof(T), sizeof value);
    return value;
}
template <typename T>
f64 read_as(const std::byte* from, u64 k) noexcept {
    return static_cast<f64>(bits_of<T>(from, k));
}

f64 value_at(element type, const std::byte* from, u64 k) noexcept {
    switch (type) {
        case element::u8_:
            return read_as<u8>(from, k);
        case element::u16_:
            return read_as<u16>(from, k);
        case element::u32_:
            return read_as<u32>(from, k);
        case element::u64_:
            return read_as<u64>(from, k);
        case element::i8_:
            return read_as<i8>(from, k);
        case element::i16_:
            return read_as<i16>(from, k);
        case element::i32_:
            return read_as<i32>(from, k);
        case element::i64_:
            return read_as<i64>(from, k);
        case element::bool_:
            return from[k] != std::byte{0} ? 1 : 0;
        case element::f8_e4m3_:
            return e4m3_value(static_cast<u8>(from[k]));
        case element::f8_e5m2_:  // the upper half of an f16
            return half_value(static_cast<u16>(static_cast<u32>(from[k]) << 8U));
        case element::f16_:
            return half_value(bits_of<u16>(from, k));
        case element::bf16_:
            return std::bit_cast<f32>(u32{bits_of<u16>(from, k)} << 16U);
        case element::f32_:
            return read_as<f32>(from, k);
        case element::f64_:
            return read_as<f64>(from, k);
    }
    return 0;
}

bool is_float(element type) noexcept {
    return type == element::f8_e4m3_ || type == element::f8_e5m2_ || type == element::f16_ ||
           type == element::bf16_ || type == element::f32_ || type == element::f64_;
}

void put(std::byte* to, f64 r, f64 g, f64 b) noexcept {
    const f64 rgb[] = {r, g, b};
    for (int c = 0; c < 3; ++c)
        to[c] = static_cast<std::byte>(std::lround(std::clamp(rgb[c], 0.0, 1.0) * 255));
    to[3] = std::byte{255};
}

/// From blue over green to red, each end dark; `at` from 0 to 1.
void put_colour(std::byte* to, f64 at) noexcept {
    const auto hump = [&](f64 middle) { return 1.5 - std::abs(at - middle) * 4; };
    put(to, hump(0.75), hump(0.5), hump(0.25));
}

template <typename Outside>
value_range range_of(const plane_picture& p, const std::byte* from, const Outside& outside) noexcept {
    f64 low = HUGE_VAL, high = -HUGE_VAL;
    for (u64 k = 0; k < u64{p.width} * p.height; ++k) {
        const f64 v = value_at(p.plane.type, from, k);
        if (!std::isfinite(v) || outside(k)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
    }
    return low <= high ? value_range{low, high} : value_range{};
}

}  // namespace

std::optional<plane_picture> picture_of(const ring::frame_format& format) {
    if (const ring::plane* color = format.find("color"); color != nullptr)
        if (const auto p = as_picture(*color); p && p->is_rgba()) return p;
    for (const ring::plane& each : format.planes)
        if (const auto p = as_picture(each)) return p;
    return std::nullopt;
}

void blacken_unused(u32 width, u32 height, picture_part used, std::byte* rgba) {
    for (u32 y = 0; y < height; ++y)
        for (u32 x = y < used.height ? used.width : 0; x < width; ++x)
            put(rgba + (u64{y} * width + x) * 4, 0, 0, 0);
}

value_range to_rgba(const plane_picture& p, const std::byte* from, std::byte* to, picture_part used) {
    const u64 pixels = u64{p.width} * p.height;
    const bool part = used.width < p.width || used.height < p.height;
    const auto outside = [&](u64 k) {
        return part && (k / p.width >= used.height || k % p.width >= used.width);
    };
    if (p.is_rgba()) {
        std::memcpy(to, from, pixels * 4);
        if (part) blacken_unused(p.width, p.height, used, to);
        return {0, 255};
    }
    if (p.plane.type == element::u8_) {
        const u64 c = p.channels;
        std::byte* const begin = to;
        for (u64 k = 0; k < pixels; ++k, to += 4) {
            for (u64 j = 0; j < 3; ++j) to[j] = from[k * c + (c == 3 ? j : 0)];
            to[3] = std::byte{255};
        }
        if (part) blacken_unused(p.width, p.height, used, begin);
        return {0, 255};
    }
    const value_range r = range_of(p, from, outside);
    const f64 scale = r.high > r.low ? 1 / (r.high - r.low) : 0;
    for (u64 k = 0; k < pixels; ++k, to += 4) {
        const f64 v = value_at(p.plane.type, from, k), at = (v - r.low) * scale;
        if (!std::isfinite(v) || outside(k))
            put(to, 0, 0, 0);
        else if (is_float(p.plane.type))
            put_colour(to, at);
        else
            put(to, at, at, at);
    }
    return r;
}

}  // namespace carousel::viewer
