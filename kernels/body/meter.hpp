#pragma once
// Measures the light of a picture, and follows it with the exposure (Reinhard, Stark, Shirley and Ferwerda
// 2002: a scene's key is the mean of the logarithm of its luminance).

#include "kernels/body/exponential.hpp"
#include "kernels/body/surface.hpp"
#include "kernels/looks.hpp"

namespace carousel::kernels::body {

struct meter_pass {
    const f32* radiance;
    i32* rows;  ///< the sum of each row
    u32 width, height;
    meter_args a;
};
/// log2 of a pixel's luminance, in units of 1/256: a whole number, so that the order of a sum does not
/// matter. Luminance is limited to 2^-12 .. 2^12.
inline constexpr f32 meter_unit = 256.0F, meter_limit = 12.0F;
[[nodiscard]] CAROUSEL_HD_INLINE i32 meter_pixel(const meter_pass& p, u32 x, u32 y) {
    const vec3 c = load_color(p.radiance + 4 * (static_cast<u64>(y) * p.width + x));
    const f32 luminance = dot({0.2126F, 0.7152F, 0.0722F}, c);
    // NaN and what is not positive become the lower limit.
    const f32 level = luminance > 0.0F ? log2_(luminance) : -meter_limit;
    return round_bounded_i32(clamp_(level, -meter_limit, meter_limit) * meter_unit);
}
/// From the sum of all pixels to the exposure of this frame: {log2 of it, the exposure}.
CAROUSEL_HD_INLINE void meter_exposure(const meter_pass& p, i64 sum) {
    const f32 pixels = static_cast<f32>(p.width) * static_cast<f32>(p.height);
    const f32 mean = static_cast<f32>(sum) / (pixels * meter_unit);
    const f32 wanted = clamp_(log2_(p.a.key) - mean, -p.a.most_stops, p.a.most_stops);
    const bool first = p.a.before[1] == 0.0F;
    const f32 stops = first ? wanted : mix(p.a.before[0], wanted, 1.0F / p.a.frames);
    p.a.after[0] = stops;
    p.a.after[1] = exp2_(stops);
}

}  // namespace carousel::kernels::body
