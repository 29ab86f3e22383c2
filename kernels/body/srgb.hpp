#pragma once
// sRGB by table, in both directions. The tables are computed at compile time without pow(), so every build
// contains the same bytes. `decode` converts a filtered texture value 0..1020 (four times an 8-bit code) to a
// linear value; `encode` converts a linear value, in 4096 steps, to a code.

#include "kernels/body/fixed_math.hpp"

namespace carousel::kernels::body {

inline constexpr u32 decode_entries = 1021, encode_entries = 4096;

struct srgb_tables {
    f32 decode[decode_entries];
    u8 encode[encode_entries];
};

/// Computes x^2.4 for 0 < x <= 1 as x^2 times the fifth root of x^2. The root is computed by Newton's
/// method.
constexpr f64 power_2_4(f64 x) {
    const f64 square = x * x;
    f64 root = 1.0;
    for (int i = 0; i < 60; ++i) {
        const f64 next =
            root - (root * root * root * root * root - square) / (5.0 * root * root * root * root);
        if (next == root) break;
        root = next;
    }
    return square * root;
}

/// IEC 61966-2-1.
constexpr f64 srgb_to_linear(f64 s) { return s <= 0.04045 ? s / 12.92 : power_2_4((s + 0.055) / 1.055); }

constexpr srgb_tables make_srgb_tables() {
    srgb_tables t{};
    for (u32 i = 0; i < decode_entries; ++i) t.decode[i] = static_cast<f32>(srgb_to_linear(i / 1020.0));
    u32 code = 0;
    for (u32 i = 0; i < encode_entries; ++i) {
        const f64 linear = i / 4095.0;
        while (code < 255 && srgb_to_linear((code + 0.5) / 255.0) <= linear) ++code;
        t.encode[i] = static_cast<u8>(code);
    }
    return t;
}

}  // namespace carousel::kernels::body
