#pragma once
// Tone mapping, from scene-referred linear light to 0..1.

#include "kernels/body/surface.hpp"

namespace carousel::kernels::body {

enum class tone_map : u32 { linear, neutral, aces };

/// Khronos PBR Neutral, as published with its specification (KhronosGroup/ToneMapping, 2024): colours whose
/// largest channel is at most 0.76 are only darkened by the offset of a dielectric's reflection.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 tone_neutral(vec3 c) {
    constexpr f32 start = 0.8F - 0.04F, desaturation = 0.15F;
    const f32 least = min_(c.x, min_(c.y, c.z));
    const f32 offset = least < 0.08F ? fma_(-6.25F * least, least, least) : 0.04F;
    c = c - vec3{offset, offset, offset};
    const f32 peak = max_(c.x, max_(c.y, c.z));
    constexpr f32 d = 1.0F - start;
    const f32 new_peak = 1.0F - d * d / (peak + d - start);
    const f32 g = 1.0F - 1.0F / fma_(desaturation, peak - new_peak, 1.0F);
    const vec3 bright = mix(c * (new_peak / peak), vec3{new_peak, new_peak, new_peak}, g);
    return {peak < start ? c.x : bright.x, peak < start ? c.y : bright.y, peak < start ? c.z : bright.z};
}

/// The fit of the ACES reference and sRGB output transforms by Stephen Hill (2015), as in the Khronos sample
/// viewer: two matrices around a rational function.
[[nodiscard]] CAROUSEL_HD_INLINE f32 aces_curve(f32 v) {
    const f32 a = fma_(v, v + 0.0245786F, -0.000090537F);
    const f32 b = fma_(v, fma_(0.983729F, v, 0.4329510F), 0.238081F);
    return a / b;
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 tone_aces(vec3 c) {
    c = c * (1.0F / 0.6F);
    const vec3 in{dot({0.59719F, 0.35458F, 0.04823F}, c), dot({0.07600F, 0.90834F, 0.01566F}, c),
                  dot({0.02840F, 0.13383F, 0.83777F}, c)};
    const vec3 fit{aces_curve(in.x), aces_curve(in.y), aces_curve(in.z)};
    return {dot({1.60475F, -0.53108F, -0.07367F}, fit), dot({-0.10208F, 1.10813F, -0.00605F}, fit),
            dot({-0.00327F, -0.07276F, 1.07602F}, fit)};
}

[[nodiscard]] CAROUSEL_HD_INLINE vec3 tone_mapped(vec3 c, tone_map how) {
    if (how == tone_map::neutral) return tone_neutral(c);
    if (how == tone_map::aces) return tone_aces(c);
    return c;
}

}  // namespace carousel::kernels::body
