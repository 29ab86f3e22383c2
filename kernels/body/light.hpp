#pragma once
// The parts of a surface's light: ambient occlusion, the shadowed directional light, the sky, fog.

#include "kernels/body/emission.hpp"
#include "kernels/body/exponential.hpp"
#include "kernels/body/reflectance.hpp"
#include "kernels/body/shade.hpp"
#include "kernels/body/sky.hpp"
#include "kernels/body/srgb.hpp"
#include "kernels/body/transform.hpp"
#include "kernels/looks.hpp"

namespace carousel::kernels::body {

inline constexpr u32 occlusion_taps = 10;

struct light_pass {
    light_args a;
    camera_rays rays;
    matrix34 to_light;     ///< world to the shadow map's clip space
    vec3 light;            ///< unit vector towards the light
    f32 scale_x, scale_y;  ///< 2 / width, 2 / height
    f32 occlusion_pixels;  ///< the occlusion's radius in pixels, at the view depth 1
    const srgb_tables* tables;
    /// Offsets of the taps in units of the radius; each row of the 4 x 4 pattern has its own rotation.
    f32 taps[16][occlusion_taps][2];
};

[[nodiscard]] inline light_pass make_light_pass(const light_args& args, const srgb_tables* tables) {
    light_pass p{};
    p.a = args;
    p.rays = make_rays(args.scene.camera, args.width, args.height);
    if (args.shadow != nullptr)
        p.to_light = view_projection(light_camera(args.scene, args.shadow_radius), 1, 1);
    p.light = unit({args.scene.light[0], args.scene.light[1], args.scene.light[2]});
    p.scale_x = 2.0F / static_cast<f32>(args.width);
    p.scale_y = 2.0F / static_cast<f32>(args.height);
    p.occlusion_pixels = args.occlusion_radius / (sqrt_(dot(p.rays.up, p.rays.up)) * p.scale_y);
    p.tables = tables;
    for (u32 row = 0; row < 16; ++row) {
        for (u32 k = 0; k < occlusion_taps; ++k) {
            // Vogel's spiral; the multiples of 7 modulo 16 put unlike rotations next to each other.
            const f64 angle = 2.39996322972865332 * k + 6.28318530717958648 / 16.0 * (row * 7 % 16);
            const sine_cosine at = sine_and_cosine(angle);
            const f64 radius = sqrt_((k + 0.5) / occlusion_taps);
            p.taps[row][k][0] = static_cast<f32>(radius * at.cosine);
            p.taps[row][k][1] = static_cast<f32>(radius * at.sine);
        }
    }
    return p;
}

[[nodiscard]] CAROUSEL_HD_INLINE vec3 ray_of_pixel(const light_pass& p, f32 x, f32 y) {
    return ray_at(p.rays, fma_(x + 0.5F, p.scale_x, -1.0F), -fma_(y + 0.5F, p.scale_y, -1.0F));
}

/// A point whose ambient occlusion is computed.
struct occluded_point {
    vec3 at, n;
    f32 radius;  ///< of the taps' disc, in pixels
};
[[nodiscard]] CAROUSEL_HD_INLINE occluded_point occluded_at(const light_pass& p, f32 fx, f32 fy, u32 normal,
                                                            f32 depth) {
    return {ray_of_pixel(p, fx, fy) * (1.0F / depth), unpack_normal(normal),
            clamp_(p.occlusion_pixels * depth, 1.0F, 96.0F)};
}
/// The pixel that a tap reads, limited to the picture.
struct tap_pixel {
    i32 x, y;
};
[[nodiscard]] CAROUSEL_HD_INLINE tap_pixel tap_of(const light_pass& p, f32 fx, f32 fy, f32 radius, f32 tap_x,
                                                  f32 tap_y) {
    return {static_cast<i32>(clamp_(fma_(tap_x, radius, fx + 0.5F), 0.0F, static_cast<f32>(p.a.width - 1))),
            static_cast<i32>(clamp_(fma_(tap_y, radius, fy + 0.5F), 0.0F, static_cast<f32>(p.a.height - 1)))};
}
/// Adds a tap: scalable ambient obscurance (McGuire et al. 2012), equation 1. `depth`: that of the tap's
/// pixel.
[[nodiscard]] CAROUSEL_HD_INLINE f32 add_tap(const light_pass& p, const occluded_point& o, tap_pixel tap,
                                             f32 depth, f32 sum) {
    const f32 square = p.a.occlusion_radius * p.a.occlusion_radius;
    const vec3 v = ray_of_pixel(p, static_cast<f32>(tap.x), static_cast<f32>(tap.y)) * (1.0F / depth) - o.at;
    const f32 vv = dot(v, v), vn = dot(v, o.n);
    const f32 falloff = positive_(square - vv);
    const f32 more = fma_(falloff * falloff * falloff,
                          positive_((vn - 0.012F * p.a.occlusion_radius) / (vv + 1.0e-4F)), sum);
    return depth > 0.0F ? more : sum;
}
/// 255 for an open surface.
[[nodiscard]] CAROUSEL_HD_INLINE u32 openness(const light_pass& p, f32 sum) {
    const f32 square = p.a.occlusion_radius * p.a.occlusion_radius, sixth = square * square * square;
    const f32 hidden = sum * p.a.occlusion_radius * 2.4F / (sixth * static_cast<f32>(occlusion_taps));
    return static_cast<u32>(to_i32(fma_(clamp_(1.0F - hidden, 0.0F, 1.0F), 255.0F, 0.5F)));
}
/// The taps lie in a disc around the pixel; neighbours have other rotations, and the light averages 4 x 4 of
/// them.
CAROUSEL_HD_INLINE void occlusion_pixel(const light_pass& p, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * p.a.width + x;
    const f32 depth = p.a.in.depth[at];
    u32 open = 255;
    if (depth > 0.0F) {
        const f32 fx = static_cast<f32>(x), fy = static_cast<f32>(y);
        const occluded_point o = occluded_at(p, fx, fy, p.a.in.normal[at], depth);
        const f32* const taps = &p.taps[(x & 3U) | (y & 3U) << 2][0][0];
        f32 sum = 0.0F;
        for (u32 k = 0; k < occlusion_taps; ++k) {
            const tap_pixel tap = tap_of(p, fx, fy, o.radius, taps[2 * k], taps[2 * k + 1]);
            sum = add_tap(
                p, o, tap,
                p.a.in.depth[static_cast<u64>(static_cast<u32>(tap.y)) * p.a.width + static_cast<u32>(tap.x)],
                sum);
        }
        open = openness(p, sum);
    }
    p.a.scratch[at] = static_cast<u8>(open);
}

/// True if the occlusion of a pixel with the depth `other` counts for a pixel with the depth `depth`.
[[nodiscard]] CAROUSEL_HD_INLINE bool same_surface(f32 other, f32 depth) {
    return !(abs_(other - depth) > 0.03F * depth);
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 mean_of(u32 sum, u32 count) {
    return count > 0
               ? static_cast<f32>(static_cast<i32>(sum)) / static_cast<f32>(static_cast<i32>(count * 255U))
               : 1.0F;
}
/// The mean occlusion of the 4 x 4 pixels around a pixel that are about as far away, 0..1.
[[nodiscard]] CAROUSEL_HD_INLINE f32 mean_openness(const light_pass& p, u32 x, u32 y, f32 depth) {
    u32 sum = 0, count = 0;
    for (u32 k = 0; k < 16; ++k) {
        const u32 nx = x + (k & 3U), ny = y + (k >> 2);
        // nx - 2 and ny - 2 wrap to large numbers beyond the left and upper border
        if (nx - 2U >= p.a.width || ny - 2U >= p.a.height) continue;
        const u64 at = static_cast<u64>(ny - 2U) * p.a.width + (nx - 2U);
        if (!same_surface(p.a.in.depth[at], depth)) continue;
        sum += p.a.scratch[at];
        ++count;
    }
    return mean_of(sum, count);
}

/// The 6 x 6 texels of the shadow map that decide on the light of a point.
struct shadow_place {
    i32 x, y;  ///< first texel; valid only if `inside`
    f32 fx, fy, receiver;
    bool inside;  ///< false: not in the light's view
};
[[nodiscard]] CAROUSEL_HD_INLINE shadow_place shadow_place_of(const light_pass& p, vec3 point, vec3 n) {
    const f32 side = static_cast<f32>(p.a.shadow_side);
    const f32 texel = 2.0F * p.a.shadow_radius / side;
    // The point is moved off the surface by the width of the filter, more where the light is grazing.
    const f32 slope = 1.0F - clamp_(dot(n, p.light), 0.0F, 1.0F);
    const clip_vertex c = to_clip(p.to_light.m, along(point, n, texel * fma_(slope, 3.5F, 1.5F)));
    const f32 inverse = 1.0F / c.w;
    const f32 x = fma_(c.x * inverse, 0.5F, 0.5F) * side - 2.5F,
              y = fma_(-(c.y * inverse), 0.5F, 0.5F) * side - 2.5F;
    // positive and small enough: floor by truncation; NaN becomes 0
    const i32 ix = static_cast<i32>(clamp_(x, 0.0F, 32768.0F)),
              iy = static_cast<i32>(clamp_(y, 0.0F, 32768.0F));
    const u32 inside =
        u32{c.w > 0.0F} & u32{x > 0.0F} & u32{y > 0.0F} & u32{x < side - 6.0F} & u32{y < side - 6.0F};
    return {ix, iy, x - static_cast<f32>(ix), y - static_cast<f32>(iy), inverse * 1.00002F, inside != 0};
}
/// Which texels let the light pass, as bits: 6 per row.
struct lit_texels {
    u32 middle;  ///< rows 1 to 4
    u32 ends;    ///< rows 0 and 5
};
inline constexpr lit_texels all_lit{0xffffffU, 0xfffU};
[[nodiscard]] CAROUSEL_HD_INLINE lit_texels lit_texels_at(const light_pass& p, const shadow_place& s) {
    const f32* const from =
        p.a.shadow + static_cast<u64>(static_cast<u32>(s.y)) * p.a.shadow_side + static_cast<u32>(s.x);
    u32 rows[6];
    for (u32 y = 0; y < 6; ++y) {
        rows[y] = 0;
        for (u32 x = 0; x < 6; ++x)
            rows[y] |= u32{from[static_cast<u64>(y) * p.a.shadow_side + x] <= s.receiver} << x;
    }
    return {rows[1] | rows[2] << 6 | rows[3] << 12 | rows[4] << 18, rows[0] | rows[5] << 6};
}
/// The part of the directional light that passes: a box of 5 x 5 texels that is centred on the point
/// (percentage-closer filtering, Reeves et al. 1987). Texels inside the box are counted; those at its border
/// have the weights fx and fy.
[[nodiscard]] CAROUSEL_HD_INLINE f32 lit_part(lit_texels lit, f32 fx, f32 fy) {
    const auto number = [](u32 bits) { return static_cast<f32>(static_cast<i32>(bits)); };
    // the sum of four bits that are 6 apart
    const auto column = [&](u32 bits) {
        return (bits & 1U) + (bits >> 6 & 1U) + (bits >> 12 & 1U) + (bits >> 18 & 1U);
    };
    // the sum of bits 1 to 4
    const auto row = [&](u32 bits) {
        return (bits >> 1 & 1U) + (bits >> 2 & 1U) + (bits >> 3 & 1U) + (bits >> 4 & 1U);
    };
    const u32 inner =
        column(lit.middle >> 1) + column(lit.middle >> 2) + column(lit.middle >> 3) + column(lit.middle >> 4);
    const f32 top = mix(number(row(lit.ends)), number(row(lit.ends >> 6)), fy);
    const f32 left = number(column(lit.middle)) + mix(number(lit.ends & 1U), number(lit.ends >> 6 & 1U), fy);
    const f32 right =
        number(column(lit.middle >> 5)) + mix(number(lit.ends >> 5 & 1U), number(lit.ends >> 11 & 1U), fy);
    return (number(inner) + top + mix(left, right, fx)) * (1.0F / 25.0F);
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 sunlit(const light_pass& p, vec3 point, vec3 n) {
    if (p.a.shadow == nullptr) return 1.0F;
    const shadow_place s = shadow_place_of(p, point, n);
    return s.inside ? lit_part(lit_texels_at(p, s), s.fx, s.fy) : 1.0F;
}

/// What a picture of all directions shows, bilinear.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 backdrop_at(const u32* texels, vec3 d) {
    constexpr f32 side = static_cast<f32>(backdrop_side), last = side - 1.0F;
    f32 u, v;
    sky_position(d, u, v);
    const f32 x = clamp_(fma_(u, side, -0.5F), 0.0F, last), y = clamp_(fma_(v, side, -0.5F), 0.0F, last);
    const u32 ix = min_(static_cast<u32>(to_i32(x)), backdrop_side - 2),
              iy = min_(static_cast<u32>(to_i32(y)), backdrop_side - 2);
    const f32 fx = x - static_cast<f32>(ix), fy = y - static_cast<f32>(iy);
    const u32* const at = texels + iy * backdrop_side + ix;
    return mix(mix(unpack_emission(at[0]), unpack_emission(at[1]), fx),
               mix(unpack_emission(at[backdrop_side]), unpack_emission(at[backdrop_side + 1]), fx), fy);
}

/// Sky and sun as pictures show them. The sun's glow is a sum of a 12th and a 400th power.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 visible_sky(const light_pass& p, vec3 d) {
    if (p.a.backdrop != nullptr) return backdrop_at(p.a.backdrop, d);
    const f32 towards = dot(d, p.light);
    // Below these bounds the powers are invisible, and subnormal numbers are slow on CPUs.
    const f32 wide = max_(towards, 1.0e-3F), narrow = max_(towards, 0.81F);
    const f32 wide4 = (wide * wide) * (wide * wide), wide12 = wide4 * wide4 * wide4;
    const f32 n2 = narrow * narrow, n4 = n2 * n2, n8 = n4 * n4, n16 = n8 * n8, n32 = n16 * n16,
              n64 = n32 * n32, n128 = n64 * n64, n256 = n128 * n128;
    const f32 glow = fma_(n256 * n128 * n16, 1.2F, wide12 * 0.16F);
    return along(sky_gradient(d), vec3{1.0F, 0.86F, 0.66F}, glow);
}

/// A point of a surface that is seen along the unit vector `d`.
struct seen_surface {
    material m;
    lobes c;
    vec3 d, n;
    vec3 mirrored;  ///< the direction that it reflects to the eye
    f32 n_v;
};
[[nodiscard]] CAROUSEL_HD_INLINE seen_surface seen_surface_of(const light_pass& p, vec3 albedo, u32 packed,
                                                              vec3 d, vec3 n) {
    const auto part = [&](u32 shift) {
        return static_cast<f32>(static_cast<i32>(packed >> shift & 255U)) * (1.0F / 255.0F);
    };
    const material_override& o = p.a.material;
    const f32 metallic = o.metallic >= 0.0F ? o.metallic : part(8),
              roughness = o.roughness >= 0.0F ? o.roughness : part(0);
    seen_surface s{};
    s.m = {albedo * vec3{o.tint[0], o.tint[1], o.tint[2]}, metallic, roughness, part(16),
           part(24) * 15.9375F};
    s.c = lobes_of(s.m);
    s.d = d, s.n = n;
    const f32 cosine = -dot(n, d);
    s.n_v = clamp_(cosine, 1.0e-3F, 1.0F);
    s.mirrored = along(d, n, 2.0F * cosine);
    return s;
}
/// The part of an even light that a rough mirror reflects, after one or more reflections between its facets
/// (Fdez-Aguera 2019: the light that one reflection loses is reflected with the mean reflectance).
[[nodiscard]] CAROUSEL_HD_INLINE vec3 mirrored_part(vec3 specular, split_sum sum) {
    const f32 lost = 1.0F - (sum.scale + sum.bias);
    const auto part = [&](f32 f0) {
        const f32 once = fma_(f0, sum.scale, sum.bias), mean = fma_(1.0F - f0, 1.0F / 21.0F, f0);
        return once + lost * once * mean / fma_(-mean, lost, 1.0F);
    };
    return {part(specular.x), part(specular.y), part(specular.z)};
}
/// The light of a surface. `sun`: irradiance after shadows. `mirror`, `coat`: the sky that surface and
/// clearcoat reflect; `coat` is not used if `coated` is false, which must be so only without a clearcoat.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 surface_light(const light_pass& p, const seen_surface& s, f32 sun,
                                                    f32 open, split_sum sum, vec3 mirror, vec3 coat,
                                                    bool coated) {
    vec3 out = reflect_light(s.m, s.c, s.n, s.d * -1.0F, p.light, coated) * sun;
    // Lagarde and de Rousiers 2014, listing 26: occlusion of the reflection
    const f32 open_mirror = clamp_(
        bounded_pow(s.n_v + open, exp2_(fma_(-16.0F, s.m.roughness, -1.0F))) - 1.0F + open, 0.0F, 1.0F);
    const vec3 specular = mirrored_part(s.c.specular, sum);
    // What the surface reflects as a mirror does not reach the diffuse lobe, as in reflect_light().
    const vec3 kept = vec3{1.0F, 1.0F, 1.0F} - specular;
    vec3 sky = s.c.diffuse * kept * diffuse_sky(*p.a.sky, s.n) * open;
    sky = sky + specular * mirror * open_mirror;
    if (coated) sky = mix(sky, coat * open_mirror, s.m.clearcoat * mix(0.04F, 1.0F, schlick_weight(s.n_v)));
    out = along(out, sky, p.a.scene.ambient);
    return along(out, s.m.albedo, s.m.emission);
}
/// The alpha of the base colour is the openness of the material's occlusion map.
[[nodiscard]] CAROUSEL_HD_INLINE f32 material_openness(u32 albedo) {
    return static_cast<f32>(static_cast<i32>(albedo >> 24)) * (1.0F / 255.0F);
}
/// Adds the emission of a material of the mesh's own; an unlit surface shows nothing else.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 with_emission(vec3 out, u32 packed, u32 normal) {
    const vec3 emission = unpack_emission(packed);
    const vec3 kept = normal == unlit_normal ? vec3{0.0F, 0.0F, 0.0F} : out;
    return kept + emission;
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 with_fog(const light_pass& p, vec3 out, vec3 sky, vec3 ray, f32 depth) {
    const f32 far = p.a.fog * sqrt_(dot(ray, ray)) / depth;
    return mix(sky, out, exp_(-(far * far)));
}

inline constexpr f32 coat_roughness = 0.06F;

}  // namespace carousel::kernels::body
