#pragma once
// The procedural sky, and the light that surfaces receive from it by the tables of environment.hpp.

#include "kernels/body/reflectance.hpp"
#include "kernels/environment.hpp"

namespace carousel::kernels::body {

/// The sky as pictures show it: a pale horizon under a blue zenith, and a warm floor below. `d` is a unit
/// vector.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 sky_gradient(vec3 d) {
    const f32 up = clamp_(d.y, 0.0F, 1.0F), down = clamp_(-d.y, 0.0F, 1.0F);
    const f32 haze = 1.0F / fma_(up, 7.0F, 1.0F);
    const vec3 above = mix(vec3{0.13F, 0.24F, 0.47F}, vec3{0.80F, 0.84F, 0.88F}, haze);
    const f32 deep = clamp_(down * 4.0F, 0.0F, 1.0F);
    const vec3 below = mix(vec3{0.80F, 0.84F, 0.88F}, vec3{0.30F, 0.28F, 0.26F}, deep);
    return d.y >= 0.0F ? above : below;
}
/// The brightness of a soft rectangular lamp in the direction `axis`, 1 inside and 0 outside; `right` and
/// `top` are the lamp's half sides as multiples of the distance.
[[nodiscard]] CAROUSEL_HD_INLINE f32 lamp(vec3 d, vec3 axis, vec3 side, f32 right, f32 top) {
    const f32 towards = dot(d, axis);
    const vec3 up{fma_(axis.y, side.z, -(axis.z * side.y)), fma_(axis.z, side.x, -(axis.x * side.z)),
                  fma_(axis.x, side.y, -(axis.y * side.x))};
    const f32 over = 1.0F / max_(towards, 1.0e-3F);
    const f32 x = abs_(dot(d, side)) * over, y = abs_(dot(d, up)) * over;
    const f32 inside =
        (1.0F - smooth_step(right * 0.7F, right, x)) * (1.0F - smooth_step(top * 0.7F, top, y));
    return towards > 0.0F ? inside : 0.0F;
}
/// The light that surfaces receive: the sky and three lamps of a studio, which pictures show only in
/// reflections.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 sky_radiance(vec3 d) {
    const vec3 base = sky_gradient(d);
    const f32 key = lamp(d, {-0.70F, 0.5099F, 0.50F}, {0.5812F, 0.0F, 0.8137F}, 0.55F, 0.38F);
    const f32 rim = lamp(d, {0.75F, 0.4243F, -0.5074F}, {0.5603F, 0.0F, 0.8283F}, 0.30F, 0.65F);
    const f32 top = lamp(d, {0.0F, 0.9950F, 0.0998F}, {1.0F, 0.0F, 0.0F}, 0.85F, 0.40F);
    return along(along(along(base, {5.2F, 4.9F, 4.4F}, key), {3.4F, 4.0F, 5.2F}, rim), {3.0F, 3.0F, 3.0F},
                 top);
}

/// Octahedral coordinates 0..1 of a unit vector, with +y in the middle of the map.
CAROUSEL_HD_INLINE void sky_position(vec3 d, f32& u, f32& v) {
    const f32 over = 1.0F / max_(abs_(d.x) + abs_(d.y) + abs_(d.z), 1.0e-6F);
    const f32 x = d.x * over, z = d.z * over;
    const f32 folded_x = 1.0F - abs_(z), folded_z = 1.0F - abs_(x);
    const bool below = d.y < 0.0F;
    u = fma_(below ? (x < 0.0F ? -folded_x : folded_x) : x, 0.5F, 0.5F);
    v = fma_(below ? (z < 0.0F ? -folded_z : folded_z) : z, 0.5F, 0.5F);
}
/// The inverse of sky_position(); coordinates beyond 0..1 are mirrored at the border as the map continues
/// there.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 sky_direction(f32 u, f32 v) {
    f32 x = fma_(u, 2.0F, -1.0F), z = fma_(v, 2.0F, -1.0F);
    if (abs_(x) > 1.0F) x = x < 0.0F ? -2.0F - x : 2.0F - x, z = -z;
    if (abs_(z) > 1.0F) z = z < 0.0F ? -2.0F - z : 2.0F - z, x = -x;
    const f32 y = 1.0F - abs_(x) - abs_(z);
    const f32 folded_x = 1.0F - abs_(z), folded_z = 1.0F - abs_(x);
    const bool below = y < 0.0F;
    const f32 fx = x < 0.0F ? -folded_x : folded_x, fz = z < 0.0F ? -folded_z : folded_z;
    return unit({below ? fx : x, y, below ? fz : z});
}

/// A place in the levels of the prefiltered sky, which are equally large.
struct sky_place {
    u32 texel;  ///< first of the 2 x 2 texels
    f32 fx, fy;
};
[[nodiscard]] CAROUSEL_HD_INLINE sky_place sky_place_of(vec3 d) {
    f32 u, v;
    sky_position(d, u, v);
    constexpr f32 side = static_cast<f32>(sky_side);
    const f32 x = clamp_(fma_(u, side, 0.5F), 0.0F, side + 0.5F),
              y = clamp_(fma_(v, side, 0.5F), 0.0F, side + 0.5F);
    const i32 ix = static_cast<i32>(x), iy = static_cast<i32>(y);
    return {static_cast<u32>(iy) * sky_pitch + static_cast<u32>(ix), x - static_cast<f32>(ix),
            y - static_cast<f32>(iy)};
}
/// The finer of two levels, and the weight of the other one.
struct sky_level {
    u32 fine;
    f32 coarse;
};
[[nodiscard]] CAROUSEL_HD_INLINE sky_level sky_level_of(f32 roughness) {
    const f32 level = clamp_(roughness, 0.0F, 1.0F) * static_cast<f32>(sky_levels - 1);
    const i32 fine = min_(to_i32(level), static_cast<i32>(sky_levels) - 2);
    return {static_cast<u32>(fine), level - static_cast<f32>(fine)};
}
/// `Color` is a vec3, or a vector of the CPU with the same components.
template <typename Color>
[[nodiscard]] CAROUSEL_HD_INLINE Color bilinear(Color a, Color b, Color c, Color d, f32 fx, f32 fy) {
    return mix(mix(a, b, fx), mix(c, d, fx), fy);
}
/// The sky as a surface of that roughness reflects it, trilinear.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 reflected_sky(const environment& e, const sky_place& at,
                                                    const sky_level& level) {
    const auto of_level = [&](u32 number) {
        const f32* const texels = &e.sky[number][0][0][0] + u64{at.texel} * 4;
        const auto texel = [texels](u32 i) { return load_color(texels + i); };
        return bilinear(texel(0), texel(4), texel(4 * sky_pitch), texel(4 * sky_pitch + 4), at.fx, at.fy);
    };
    return mix(of_level(level.fine), of_level(level.fine + 1), level.coarse);
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 reflected_sky(const environment& e, vec3 d, f32 roughness) {
    return reflected_sky(e, sky_place_of(d), sky_level_of(roughness));
}
/// Diffuse light around the normal n for an albedo of 1 (irradiance / pi).
[[nodiscard]] CAROUSEL_HD_INLINE vec3 diffuse_sky(const environment& e, vec3 n) {
    vec3 sum{0.0F, 0.0F, 0.0F};
    // no loop: a loop inside a loop over pixels is not vectorised
    const auto add = [&](u32 i, f32 basis) __attribute__((always_inline)) {
        sum = along(sum, {e.harmonics[i][0], e.harmonics[i][1], e.harmonics[i][2]}, basis);
    };
    add(0, 1.0F), add(1, n.y), add(2, n.z), add(3, n.x);
    add(4, n.x * n.y), add(5, n.y * n.z), add(6, fma_(3.0F * n.z, n.z, -1.0F)), add(7, n.x * n.z);
    add(8, fma_(n.x, n.x, -(n.y * n.y)));
    return {positive_(sum.x), positive_(sum.y), positive_(sum.z)};
}
/// Scale and bias for the specular colour, bilinear in the split-sum table.
struct split_sum {
    f32 scale, bias;
};
struct split_sum_place {
    u32 first;  ///< entry, as a number of pairs from the table's begin
    f32 fx, fy;
};
[[nodiscard]] CAROUSEL_HD_INLINE split_sum_place split_sum_place_of(f32 n_v, f32 roughness) {
    constexpr i32 last = static_cast<i32>(split_sum_side) - 1;
    const f32 x = clamp_(n_v, 0.0F, 1.0F) * static_cast<f32>(last),
              y = clamp_(roughness, 0.0F, 1.0F) * static_cast<f32>(last);
    const i32 ix = min_(to_i32(x), last - 1), iy = min_(to_i32(y), last - 1);
    return {static_cast<u32>(iy) * split_sum_side + static_cast<u32>(ix), x - static_cast<f32>(ix),
            y - static_cast<f32>(iy)};
}
[[nodiscard]] CAROUSEL_HD_INLINE split_sum split_sum_at(const environment& e, f32 n_v, f32 roughness) {
    const split_sum_place at = split_sum_place_of(n_v, roughness);
    const f32* const a = &e.split_sum[0][0][0] + u64{at.first} * 2;
    const f32* const b = a + split_sum_side * 2;
    return {bilinear(a[0], a[2], b[0], b[2], at.fx, at.fy), bilinear(a[1], a[3], b[1], b[3], at.fx, at.fy)};
}

}  // namespace carousel::kernels::body
