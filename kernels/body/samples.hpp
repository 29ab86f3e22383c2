#pragma once
// Four samples per pixel (multisampling). Triangles are rasterised at twice the picture's width and height,
// so that the centres of the four small pixels are the fixed positions of a pixel's samples: 1/4 and 3/4 of
// its sides. Samples that show one triangle (or the floor, or nothing) are one surface, which is computed
// once, at the mean of their positions: all samples of a triangle include the mean. Surfaces that would be
// lit alike count as one, so that only visible edges cost more than one surface. Sample s is in column s & 1
// and row s >> 1.

#include "kernels/body/gbuffer.hpp"

namespace carousel::kernels::body {

/// What a sample shows: the number of a triangle, or one of the values below.
inline constexpr u64 shows_floor = 1ULL << 32, shows_nothing = 2ULL << 32;

/// The shading of a picture of twice the width and height, whose pixels are the samples.
[[nodiscard]] CAROUSEL_HD_INLINE shading doubled(shading s) {
    s.scale_x *= 0.5F;
    s.scale_y *= 0.5F;
    return s;
}
/// Position of a sample in the picture, as centre_x().
[[nodiscard]] CAROUSEL_HD_INLINE f32 sample_x(const shading& s, u32 x, u32 sample) {
    return fma_(static_cast<f32>(x) + ((sample & 1U) != 0 ? 0.75F : 0.25F), s.scale_x, -1.0F);
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 sample_y(const shading& s, u32 y, u32 sample) {
    return -fma_(static_cast<f32>(y) + ((sample & 2U) != 0 ? 0.75F : 0.25F), s.scale_y, -1.0F);
}
[[nodiscard]] CAROUSEL_HD_INLINE u64 shown_by_sample(const surface_job& j, u64 key, f32 px, f32 py) {
    if (floor_at(j, px, py, depth_of(key)) > 0.0F) return shows_floor;
    const u64 limit = j.mesh.materials != nullptr ? j.all_ids : j.id_limit;
    return static_cast<u32>(key) < limit ? u64{static_cast<u32>(key)} : shows_nothing;
}

[[nodiscard]] CAROUSEL_HD_INLINE u32 bits_in(u32 mask) {
    return (mask & 1U) + (mask >> 1 & 1U) + (mask >> 2 & 1U) + (mask >> 3 & 1U);
}
/// The mean position of the samples in `mask`; the pixel's centre for all four.
[[nodiscard]] CAROUSEL_HD_INLINE f32 mean_x(const shading& s, u32 x, u32 mask) {
    const f32 part = static_cast<f32>(bits_in(mask & 10U)) / static_cast<f32>(bits_in(mask));
    return fma_(static_cast<f32>(x) + (0.25F + 0.5F * part), s.scale_x, -1.0F);
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 mean_y(const shading& s, u32 y, u32 mask) {
    const f32 part = static_cast<f32>(bits_in(mask & 12U)) / static_cast<f32>(bits_in(mask));
    return -fma_(static_cast<f32>(y) + (0.25F + 0.5F * part), s.scale_y, -1.0F);
}
/// 1 / view depth is linear over a triangle, so that the mean is that of the mean position.
[[nodiscard]] CAROUSEL_HD_INLINE f32 mean_depth(const u64 (&keys)[4], u32 mask) {
    f32 sum = 0.0F;
    for (u32 s = 0; s < 4; ++s) sum += (mask >> s & 1U) != 0 ? depth_of(keys[s]) : 0.0F;
    return sum / static_cast<f32>(bits_in(mask));
}

/// A surface of a pixel: one element of each plane of the G-buffer.
struct surface_record {
    f32 depth;
    surface_words words;
};

/// `depth`: of the triangle; that of the floor is computed here.
template <typename Tables>
[[nodiscard]] CAROUSEL_HD_INLINE surface_record surface_at(const surface_job& j, const Tables& tables,
                                                           u64 shown, f32 px, f32 py, f32 depth) {
    if (shown == shows_nothing) return {depth, {0U, 0U, 0U, 0U}};
    if (shown == shows_floor) {
        const f32 floor = floor_at(j, px, py, 0.0F);
        return {floor, floor > 0.0F ? floor_words(j, tables) : surface_words{0U, 0U, 0U, 0U}};
    }
    const u32 id = static_cast<u32>(shown);
    surface_record r{depth, triangle_words(j, tables, id, px, py)};
    if (shows_marks(j) && depth > 0.0F) r.words.albedo = marked(j, id, px, py, r.words.albedo);
    return r;
}

[[nodiscard]] CAROUSEL_HD_INLINE bool near_bytes(u32 a, u32 b, i32 most) {
    bool near = true;
    for (u32 shift = 0; shift < 32; shift += 8) {
        const i32 difference = static_cast<i32>(a >> shift & 255U) - static_cast<i32>(b >> shift & 255U);
        near = near && difference <= most && -difference <= most;
    }
    return near;
}
/// True if two surfaces of a pixel are lit alike: about the same depth (3 %, as same_surface() of light.hpp),
/// direction (20 degrees) and material (8 of 255).
[[nodiscard]] CAROUSEL_HD_INLINE bool lit_alike(const surface_record& a, const surface_record& b) {
    if (!(abs_(a.depth - b.depth) <= 0.03F * a.depth)) return false;
    if (a.words.emission != b.words.emission ||
        (a.words.normal == unlit_normal) != (b.words.normal == unlit_normal))
        return false;
    return near_bytes(a.words.albedo, b.words.albedo, 8) &&
           near_bytes(a.words.material, b.words.material, 8) &&
           (a.words.normal == b.words.normal ||
            dot(unpack_normal(a.words.normal), unpack_normal(b.words.normal)) >= 0.94F);
}

/// `triangle`: what the pixel's first sample shows.
CAROUSEL_HD_INLINE void store_surface(const surface_planes& out, u64 at, const surface_record& r,
                                      u64 triangle) {
    out.albedo[at] = r.words.albedo;
    out.normal[at] = r.words.normal;
    out.material[at] = r.words.material;
    out.depth[at] = r.depth;
    if (out.emission != nullptr) out.emission[at] = r.words.emission;
    if (out.triangle != nullptr)
        out.triangle[at] = triangle < shows_floor ? static_cast<u32>(triangle) : no_triangle;
}
CAROUSEL_HD_INLINE void store_further_surface(const surface_planes& out, u64 at, u32 number,
                                              const surface_record& r) {
    u32* const to = out.samples + (at * further_surfaces + number - 1U) * layer_words;
    to[0] = bits_of(r.depth);
    to[1] = r.words.albedo;
    to[2] = r.words.normal;
    to[3] = r.words.material;
    to[4] = r.words.emission;
}

/// Writes the surfaces of a pixel. `surface`: one for each sample that is the first one of its surface.
/// `first[s]`: the first sample of the surface that sample s shows. `triangle`: as for store_surface().
CAROUSEL_HD_INLINE void store_samples(const surface_planes& out, u64 at, const surface_record (&surface)[4],
                                      const u32 (&first)[4], u64 triangle) {
    u32 number[4] = {0, 0, 0, 0};  // of the surface that each sample shows
    u32 kept[4] = {0, 0, 0, 0};    // the first sample of each surface
    u32 count = 1;
    store_surface(out, at, surface[0], triangle);
    for (u32 s = 1; s < 4; ++s) {
        if (first[s] != s) {
            number[s] = number[first[s]];
            continue;
        }
        u32 same = 0;
        while (same < count && !lit_alike(surface[kept[same]], surface[s])) ++same;
        number[s] = same;
        if (same < count) continue;
        kept[count] = s;
        store_further_surface(out, at, count, surface[s]);
        ++count;
    }
    out.coverage[at] = static_cast<u8>(number[1] << 2 | number[2] << 4 | number[3] << 6);
}

/// Writes the pixel's elements of all planes from the keys of its four samples.
template <typename Tables>
CAROUSEL_HD_INLINE void samples_pixel(const surface_job& j, const Tables& tables, const u64 (&keys)[4], u32 x,
                                      u32 y) {
    const u64 at = static_cast<u64>(y) * j.width + x;
    u64 shown[4];
    for (u32 s = 0; s < 4; ++s)
        shown[s] = shown_by_sample(j, keys[s], sample_x(j.shade, x, s), sample_y(j.shade, y, s));
    surface_record surface[4];
    u32 first[4];
    for (u32 s = 0; s < 4; ++s) {
        u32 mask = 0;
        for (u32 t = 0; t < 4; ++t) mask |= u32{shown[t] == shown[s]} << t;
        first[s] = (mask & 1U) != 0 ? 0U : ((mask & 2U) != 0 ? 1U : ((mask & 4U) != 0 ? 2U : 3U));
        if (first[s] == s)
            surface[s] = surface_at(j, tables, shown[s], mean_x(j.shade, x, mask), mean_y(j.shade, y, mask),
                                    mean_depth(keys, mask));
    }
    if ((first[1] | first[2] | first[3]) == 0) {
        store_surface(j.out, at, surface[0], shown[0]);
        j.out.coverage[at] = 0;
        return;
    }
    store_samples(j.out, at, surface, first, shown[0]);
}

}  // namespace carousel::kernels::body
