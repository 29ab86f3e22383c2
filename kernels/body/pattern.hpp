#pragma once
// Base colour textures of the procedural meshes, texel by texel, as 8-bit sRGB codes.

#include "kernels/body/mesh.hpp"

namespace carousel::kernels::body {

struct color {
    f64 r, g, b;
};
[[nodiscard]] CAROUSEL_HD_INLINE color mix(color a, color b, f64 t) {
    return {lerp_(a.r, b.r, t), lerp_(a.g, b.g, t), lerp_(a.b, b.b, t)};
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 pack(color c) {
    const u32 r = static_cast<u32>(unit_(c.r / 255.0) * 255.0 + 0.5),
              g = static_cast<u32>(unit_(c.g / 255.0) * 255.0 + 0.5),
              b = static_cast<u32>(unit_(c.b / 255.0) * 255.0 + 0.5);
    return r | g << 8 | b << 16 | 0xff000000U;
}

/// The colour depends on the height of the bumps: hollows are indigo, slopes are teal and sand, tops are
/// coral.
[[nodiscard]] CAROUSEL_HD_INLINE color sphere_color(f64 u, f64 v) {
    const f64 bump = sine_and_cosine(18.0 * pi * u).sine * sine_and_cosine(7.0 * pi * v).sine;
    color c = mix({30, 44, 104}, {26, 118, 150}, smooth_(-1.0, -0.35, bump));
    c = mix(c, {150, 206, 176}, smooth_(-0.45, 0.05, bump));
    c = mix(c, {246, 208, 132}, smooth_(0.0, 0.5, bump));
    c = mix(c, {228, 96, 70}, smooth_(0.4, 0.95, bump));
    return c;
}

[[nodiscard]] CAROUSEL_HD_INLINE color terrain_color(f64 u, f64 v) {
    const f64 x = 2.0 * u - 1.0, z = 2.0 * v - 1.0, step = 1.0 / 512.0;
    const f64 h = island_height(x, z);
    const f64 dx = (island_height(x + step, z) - h) / step, dz = (island_height(x, z + step) - h) / step;
    const f64 steep = sqrt_(dx * dx + dz * dz);
    const f64 grain = lattice_noise(x * 90.0, z * 90.0, 5U);
    if (h < 0.0) return mix({64, 176, 190}, {22, 84, 140}, smooth_(0.0, 0.075, -h));
    color c = mix({226, 208, 150}, mix({98, 150, 60}, {66, 120, 50}, grain), smooth_(0.012, 0.03, h));
    c = mix(c, mix({52, 98, 52}, {78, 112, 58}, grain), smooth_(0.10, 0.22, h));
    c = mix(c, mix({120, 108, 98}, {148, 136, 124}, grain),
            smooth_(0.9, 1.6, steep) * smooth_(0.03, 0.12, h));
    c = mix(c, mix({112, 102, 96}, {140, 130, 122}, grain), smooth_(0.26, 0.38, h));
    return mix(c, {244, 247, 252}, smooth_(0.30, 0.40, h + 0.06 * grain) * smooth_(6.5, 3.5, steep));
}

[[nodiscard]] CAROUSEL_HD_INLINE color knot_color(f64 u, f64 v) {
    const f64 stripe = smooth_(-0.25, 0.25, sine_and_cosine(2.0 * pi * u).sine);
    return v < 0.5 ? mix({236, 164, 48}, {208, 64, 44}, stripe) : mix({52, 166, 178}, {30, 82, 150}, stripe);
}

[[nodiscard]] CAROUSEL_HD_INLINE color checker_color(u32 x, u32 y) {
    return ((x >> 5 ^ y >> 5) & 1U) ? color{214, 214, 208} : color{176, 184, 192};
}

/// Returns a texel of the texture that belongs to the shape. Sizes: procedural_counts().
[[nodiscard]] CAROUSEL_HD_INLINE u32 texel_of(mesh_shape shape, u32 x, u32 y, u32 width, u32 height) {
    const f64 u = (x + 0.5) / width, v = (y + 0.5) / height;
    switch (shape) {
        case mesh_shape::bumpy_sphere:
            return pack(sphere_color(u, v));
        case mesh_shape::fractal_terrain:
            return pack(terrain_color(u, v));
        case mesh_shape::torus_knots:
            return pack(knot_color(u, v));
        case mesh_shape::quad_stack:
        case mesh_shape::quad_stack_front_first:
            return pack(mix(checker_color(x, y), {90 + 150 * u, 120, 220 - 130 * v}, 0.6));
        default:
            return pack({60 + 180 * u, 70 + 150 * v, 200 - 120 * u});
    }
}

}  // namespace carousel::kernels::body
