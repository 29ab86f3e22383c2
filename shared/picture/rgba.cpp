#include "picture/rgba.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace carousel {
namespace {

constexpr i32 fraction_bits = 16;

/// The factors of the equations, as numbers with 16 bits of fraction.
struct yuv_factors {
    i32 black, luma, red_of_v, green_of_u, green_of_v, blue_of_u;
};

yuv_factors factors_of(const ring::yuv_colours& c) {
    const auto fixed = [](f64 v) { return static_cast<i32>(std::lround(v * (1 << fraction_bits))); };
    const f64 luma = c.full_range ? 1.0 : 255.0 / 219, chroma = c.full_range ? 1.0 : 255.0 / 224;
    const f64 r = c.red_part(), b = c.blue_part(), g = 1 - r - b;
    return {.black = c.full_range ? 0 : 16,
            .luma = fixed(luma),
            .red_of_v = fixed(2 * (1 - r) * chroma),
            .green_of_u = fixed(2 * (1 - b) * b / g * chroma),
            .green_of_v = fixed(2 * (1 - r) * r / g * chroma),
            .blue_of_u = fixed(2 * (1 - b) * chroma)};
}

u8 rounded(i32 v) noexcept {
    return static_cast<u8>(std::clamp((v + (1 << (fraction_bits - 1))) >> fraction_bits, 0, 255));
}

void gray8_to_rgba8(const u8* from, u64 pixels, u8* to) {
    for (u64 k = 0; k < pixels; ++k, to += 4) {
        to[0] = to[1] = to[2] = from[k];
        to[3] = 255;
    }
}

void rgba16_to_rgba8(const u16* from, u64 values, u8* to) {
    for (u64 k = 0; k < values; ++k) to[k] = static_cast<u8>((u32{from[k]} * 255 + 32767) / 65535);
}

}  // namespace

void nv12_to_rgba8(const nv12_picture& from, std::byte* rgba) {
    const yuv_factors f = factors_of(from.colours);
    auto* to = reinterpret_cast<u8*>(rgba);
    for (u32 row = 0; row < from.height; ++row) {
        const auto* y = reinterpret_cast<const u8*>(from.y + row * from.y_stride);
        const auto* uv = reinterpret_cast<const u8*>(from.uv + row / 2 * from.uv_stride);
        for (u32 x = 0; x < from.width; ++x, to += 4) {
            const i32 light = (y[x] - f.black) * f.luma, u = uv[x & ~1U] - 128, v = uv[x | 1U] - 128;
            to[0] = rounded(light + f.red_of_v * v);
            to[1] = rounded(light - f.green_of_u * u - f.green_of_v * v);
            to[2] = rounded(light + f.blue_of_u * u);
            to[3] = 255;
        }
    }
}

void to_rgba8(const ring::image_description& what, const std::byte* slot, std::byte* rgba) {
    const std::byte* const first = slot + what.first_plane;
    const u64 pixels = u64{what.width} * what.height;
    switch (what.pixels) {
        case ring::pixel_format::rgba8:
            std::memcpy(rgba, first, pixels * 4);
            break;
        case ring::pixel_format::rgba16:
            rgba16_to_rgba8(reinterpret_cast<const u16*>(first), pixels * 4, reinterpret_cast<u8*>(rgba));
            break;
        case ring::pixel_format::gray8:
            gray8_to_rgba8(reinterpret_cast<const u8*>(first), pixels, reinterpret_cast<u8*>(rgba));
            break;
        case ring::pixel_format::nv12:
            nv12_to_rgba8(
                {first, what.width, slot + what.uv_plane, what.width, what.width, what.height, what.colours},
                rgba);
            break;
    }
}

}  // namespace carousel
