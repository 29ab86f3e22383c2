#pragma once
// Transparent triangles in a G-buffer: the nearest fragments of each pixel that its opaque surface does not
// hide, sorted by their keys. A set of the smallest integers does not depend on the order in which fragments
// are drawn, so that all devices keep the same ones.

#include "kernels/body/gbuffer.hpp"
#include "kernels/body/non_opaque.hpp"

namespace carousel::kernels::body {

/// Keys of a pixel's layers, nearest first, `stride` apart.
CAROUSEL_HD_INLINE void add_layer(u64* keys, u64 stride, u32 layers, u64 key) {
    for (u32 i = 0; i < layers; ++i) {
        const u64 old = keys[i * stride];
        keys[i * stride] = min_(old, key);
        key = max_(old, key);
    }
}

/// A transparent fragment that is visible; invisible ones must not take the place of others.
[[nodiscard]] CAROUSEL_HD_INLINE bool is_visible_layer(const surface_job& j, u32 id, f32 px, f32 py) {
    return opacity_at(j, id, px, py) >= 1.0F / 510.0F;
}

/// 1 / view depth of the farthest surface of a pixel; 0 if a sample shows no surface.
[[nodiscard]] CAROUSEL_HD_INLINE f32 farthest_surface(const surface_planes& planes, u64 at) {
    f32 farthest = planes.depth[at];
    if (planes.coverage == nullptr) return farthest;
    const u32 coverage = planes.coverage[at];
    for (u32 s = 1; s < 4; ++s) {
        const u32 number = coverage >> (2 * s) & 3U;
        if (number != 0)
            farthest =
                min_(farthest, float_of(planes.samples[(at * further_surfaces + number - 1U) * layer_words]));
    }
    return farthest;
}

/// Writes the pixel's elements of the plane `layers`, after surface_pixel() or samples_pixel(). A layer that
/// the floor hides is empty, as are those after it.
template <typename Tables>
CAROUSEL_HD_INLINE void layers_pixel(const surface_job& j, const Tables& tables, const u64* keys, u64 stride,
                                     u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * j.width + x;
    u32* to = j.out.layers + at * j.out.layer_count * layer_words;
    const f32 opaque = farthest_surface(j.out, at);
    for (u32 i = 0; i < j.out.layer_count; ++i, to += layer_words) {
        const u64 key = keys[i * stride];
        const u32 id = static_cast<u32>(key);
        const f32 depth = float_of(~static_cast<u32>(key >> 32));
        if (key == empty_key || id >= j.all_ids || !(depth > opaque)) {
            for (u32 k = 0; k < layer_words; ++k) to[k] = 0;
            continue;
        }
        const surface_values v =
            material_surface_at(j, tables, id, centre_x(j.shade, x), centre_y(j.shade, y));
        const surface_words w = material_words(tables, v);
        to[0] = bits_of(depth);
        to[1] = w.albedo;
        to[2] = w.normal;
        to[3] = w.material | byte_of(v.opacity, 255.0F) << 24;
        to[4] = w.emission;
    }
}

}  // namespace carousel::kernels::body
