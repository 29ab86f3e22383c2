#pragma once
// The light of one pixel of a G-buffer: of its surface, or of those that its samples show, covered by
// transparent layers.

#include "kernels/body/light.hpp"

namespace carousel::kernels::body {

/// True if light_pixel() does more than the loops over rows: lights of a file, transparent layers, shading
/// modes.
[[nodiscard]] CAROUSEL_HD_INLINE bool has_extras(const light_pass& p) {
    return p.a.light_count > 0 || p.a.in.layers != nullptr || p.a.scene.shading != 0;
}

/// A surface as the G-buffer stores it.
struct seen_words {
    u32 albedo, normal, material, emission;
};
/// The light of a surface that is seen along `ray`, whose unit vector is `d`. `open`: the part of the sky's
/// light that neighbours leave.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 lit_surface(const light_pass& p, const srgb_tables& tables,
                                                  const seen_words& w, vec3 ray, vec3 d, f32 depth,
                                                  f32 open) {
    const auto linear = [&](u32 shift) { return tables.decode[4 * (w.albedo >> shift & 255U)]; };
    const seen_surface s =
        seen_surface_of(p, {linear(0), linear(8), linear(16)}, w.material, d, unpack_normal(w.normal));
    const vec3 point = along(p.rays.eye, ray, 1.0F / depth);
    const bool coated = s.m.clearcoat > 0.0F;
    f32 sun = p.a.sun;
    if (dot(s.n, p.light) > 0.0F) sun *= sunlit(p, point, s.n);
    const sky_place mirror = sky_place_of(s.mirrored);
    const vec3 coat = coated ? reflected_sky(*p.a.sky, mirror, sky_level_of(coat_roughness)) : vec3{};
    vec3 out = surface_light(p, s, sun, material_openness(w.albedo) * open,
                             split_sum_at(*p.a.sky, s.n_v, s.m.roughness),
                             reflected_sky(*p.a.sky, mirror, sky_level_of(s.m.roughness)), coat, coated);
    for (u32 i = 0; i < p.a.light_count; ++i) {
        const incident_light l = incident(p.a.lights[i], point);
        out = out + reflect_light(s.m, s.c, s.n, d * -1.0F, l.towards, coated) * l.irradiance;
    }
    if (p.a.in.emission != nullptr) out = with_emission(out, w.emission, w.normal);
    return p.a.fog > 0.0F ? with_fog(p, out, visible_sky(p, d), ray, depth) : out;
}

/// Covers the light of a surface by the pixel's transparent layers that are nearer, the farthest one first.
/// `surface`: 1 / view depth of the surface.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 with_layers(const light_pass& p, const srgb_tables& tables, u64 at,
                                                  vec3 ray, vec3 d, f32 surface, vec3 out) {
    const u32 count = min_(p.a.in.layer_count, max_layers);
    const u32* const first = p.a.in.layers + at * p.a.in.layer_count * layer_words;
    for (u32 i = count; i > 0; --i) {
        const u32* const w = first + (i - 1) * layer_words;
        const f32 depth = float_of(w[0]);
        if (!(depth > surface)) continue;
        const vec3 lit = lit_surface(p, tables, {w[1], w[2], w[3] & 0xffffffU, w[4]}, ray, d, depth, 1.0F);
        out = mix(out, lit, static_cast<f32>(w[3] >> 24) * (1.0F / 255.0F));
    }
    return out;
}

/// A surface by scene_state::shading 1 to 3: the codes of fragment's pictures, as light.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 shown_by_mode(const light_pass& p, const srgb_tables& tables,
                                                    const seen_words& w, f32 depth) {
    u32 codes = w.albedo;
    if (p.a.scene.shading == 1)
        codes = shade_normal(unpack_normal(w.normal == unlit_normal ? 0x7fff7fffU : w.normal));
    if (p.a.scene.shading == 3) codes = shade_depth(depth);
    const auto linear = [&](u32 shift) { return tables.decode[4 * (codes >> shift & 255U)]; };
    return {linear(0), linear(8), linear(16)};
}

/// The light of one of a pixel's surfaces (`depth` 0: of the sky), covered by transparent layers.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 seen_light(const light_pass& p, const srgb_tables& tables,
                                                 const seen_words& w, f32 depth, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * p.a.width + x;
    const vec3 ray = ray_of_pixel(p, static_cast<f32>(x), static_cast<f32>(y));
    const vec3 d = unit(ray);
    vec3 out{};
    if (!(depth > 0.0F)) {
        out = visible_sky(p, d);
    } else {
        out = p.a.scene.shading != 0
                  ? shown_by_mode(p, tables, w, depth)
                  : lit_surface(p, tables, w, ray, d, depth,
                                p.a.occlusion_radius > 0.0F ? mean_openness(p, x, y, depth) : 1.0F);
    }
    if (p.a.in.layers != nullptr && p.a.scene.shading == 0)
        out = with_layers(p, tables, at, ray, d, depth, out);
    return out;
}

/// Surface `number` of a pixel, 1 to 3 (body/samples.hpp).
struct further_surface {
    seen_words words;
    f32 depth;
};
[[nodiscard]] CAROUSEL_HD_INLINE further_surface further_surface_of(const surface_planes& in, u64 at,
                                                                    u32 number) {
    const u32* const w = in.samples + (at * further_surfaces + number - 1U) * layer_words;
    return {{w[1], w[2], w[3], w[4]}, float_of(w[0])};
}
/// The part of a pixel's samples that show surface `number`.
[[nodiscard]] CAROUSEL_HD_INLINE f32 part_of_samples(u32 coverage, u32 number) {
    u32 count = 0;
    for (u32 s = 0; s < 4; ++s) count += u32{(coverage >> (2 * s) & 3U) == number};
    return static_cast<f32>(static_cast<i32>(count)) * 0.25F;
}
/// The mean of a pixel's samples. `first`: the light of the pixel's first surface. `light_of(words, depth)`:
/// seen_light() of another one.
template <typename LightOf>
[[nodiscard]] CAROUSEL_HD_INLINE vec3 mean_light(const light_pass& p, u64 at, u32 coverage, vec3 first,
                                                 const LightOf& light_of) {
    vec3 sum = first * part_of_samples(coverage, 0);
    for (u32 number = 1; number <= further_surfaces; ++number) {
        const f32 part = part_of_samples(coverage, number);
        if (!(part > 0.0F)) continue;
        const further_surface s = further_surface_of(p.a.in, at, number);
        sum = along(sum, light_of(s.words, s.depth), part);
    }
    return sum;
}

/// `light_of(words, depth)`: seen_light() of a surface of the pixel.
template <typename LightOf>
[[nodiscard]] CAROUSEL_HD_INLINE vec3 first_light(const light_pass& p, u64 at, const LightOf& light_of) {
    const f32 depth = p.a.in.depth[at];
    seen_words w{};
    if (depth > 0.0F)
        w = {p.a.in.albedo[at], p.a.in.normal[at], p.a.in.material[at],
             p.a.in.emission != nullptr ? p.a.in.emission[at] : 0U};
    return light_of(w, depth);
}

CAROUSEL_HD_INLINE void light_pixel(const light_pass& p, const srgb_tables& tables, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * p.a.width + x;
    const vec3 out = first_light(
        p, at, [&](const seen_words& w, f32 depth) { return seen_light(p, tables, w, depth, x, y); });
    store_color(p.a.radiance + 4 * at, out);
}
/// The same with four samples per pixel.
template <typename LightOf>
CAROUSEL_HD_INLINE void light_samples_pixel(const light_pass& p, u64 at, const LightOf& light_of) {
    vec3 out = first_light(p, at, light_of);
    const u32 coverage = p.a.in.coverage[at];
    if (coverage != 0) out = mean_light(p, at, coverage, out, light_of);
    store_color(p.a.radiance + 4 * at, out);
}

}  // namespace carousel::kernels::body
