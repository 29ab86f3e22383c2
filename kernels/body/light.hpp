#pragma once
// The light of one pixel of a G-buffer: ambient occlusion, then the shadowed directional light and the sky.

#include "kernels/body/emission.hpp"
#include "kernels/body/exponential.hpp"
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

/// Scalable ambient obscurance (McGuire et al. 2012), equation 1: 255 for an open surface. The taps lie in a
/// disc around the pixel; neighbours have other rotations, and light_pixel() averages 4 x 4 of them.
CAROUSEL_HD_INLINE void occlusion_pixel(const light_pass& p, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * p.a.width + x;
    const f32 depth = p.a.in.depth[at];
    u32 open = 255;
    if (depth > 0.0F) {
        const vec3 n = unpack_normal(p.a.in.normal[at]);
        const f32 fx = static_cast<f32>(x), fy = static_cast<f32>(y);
        const vec3 here = ray_of_pixel(p, fx, fy) * (1.0F / depth);
        const f32 radius = clamp_(p.occlusion_pixels * depth, 1.0F, 96.0F);
        const f32 square = p.a.occlusion_radius * p.a.occlusion_radius;
        const f32* const taps = &p.taps[(x & 3U) | (y & 3U) << 2][0][0];
        f32 sum = 0.0F;
        for (u32 k = 0; k < occlusion_taps; ++k) {
            const f32 tx =
                          clamp_(fma_(taps[2 * k], radius, fx + 0.5F), 0.0F, static_cast<f32>(p.a.width - 1)),
                      ty = clamp_(fma_(taps[2 * k + 1], radius, fy + 0.5F), 0.0F,
                                  static_cast<f32>(p.a.height - 1));
            const i32 ix = static_cast<i32>(tx), iy = static_cast<i32>(ty);
            const f32 other = p.a.in.depth[static_cast<u64>(iy) * p.a.width + static_cast<u32>(ix)];
            if (!(other > 0.0F)) continue;
            const vec3 v =
                ray_of_pixel(p, static_cast<f32>(ix), static_cast<f32>(iy)) * (1.0F / other) - here;
            const f32 vv = dot(v, v), vn = dot(v, n);
            const f32 falloff = positive_(square - vv);
            sum = fma_(falloff * falloff * falloff,
                       positive_((vn - 0.012F * p.a.occlusion_radius) / (vv + 1.0e-4F)), sum);
        }
        const f32 sixth = square * square * square;
        const f32 hidden = sum * p.a.occlusion_radius * 2.4F / (sixth * static_cast<f32>(occlusion_taps));
        open = static_cast<u32>(to_i32(fma_(clamp_(1.0F - hidden, 0.0F, 1.0F), 255.0F, 0.5F)));
    }
    p.a.scratch[at] = static_cast<u8>(open);
}

/// The mean occlusion of the 4 x 4 pixels around a pixel that are about as far away, 0..1.
[[nodiscard]] CAROUSEL_HD_INLINE f32 mean_openness(const light_pass& p, u32 x, u32 y, f32 depth) {
    u32 sum = 0, count = 0;
    for (u32 k = 0; k < 16; ++k) {
        const u32 nx = x + (k & 3U), ny = y + (k >> 2);
        // nx - 2 and ny - 2 wrap to large numbers beyond the left and upper border
        if (nx - 2U >= p.a.width || ny - 2U >= p.a.height) continue;
        const u64 at = static_cast<u64>(ny - 2U) * p.a.width + (nx - 2U);
        if (abs_(p.a.in.depth[at] - depth) > 0.03F * depth) continue;
        sum += p.a.scratch[at];
        ++count;
    }
    return count > 0 ? static_cast<f32>(sum) / static_cast<f32>(count * 255U) : 1.0F;
}

/// The part of the directional light that reaches a point: 6 x 6 texels, weighted as a box of 5 x 5 that is
/// centred on the point (percentage-closer filtering, Reeves et al. 1987).
[[nodiscard]] CAROUSEL_HD_INLINE f32 sunlit(const light_pass& p, vec3 point, vec3 n) {
    if (p.a.shadow == nullptr) return 1.0F;
    const f32 side = static_cast<f32>(p.a.shadow_side);
    const f32 texel = 2.0F * p.a.shadow_radius / side;
    // The point is moved off the surface by the width of the filter, more where the light is grazing.
    const f32 slope = 1.0F - clamp_(dot(n, p.light), 0.0F, 1.0F);
    const clip_vertex c = to_clip(p.to_light.m, along(point, n, texel * fma_(slope, 3.5F, 1.5F)));
    if (!(c.w > 0.0F)) return 1.0F;  // not in the light's view
    const f32 inverse = 1.0F / c.w;
    const f32 x = fma_(c.x * inverse, 0.5F, 0.5F) * side - 2.5F,
              y = fma_(-(c.y * inverse), 0.5F, 0.5F) * side - 2.5F;
    if (!(x > 0.0F && y > 0.0F && x < side - 6.0F && y < side - 6.0F)) return 1.0F;
    const i32 ix = floor_bounded_i32(x), iy = floor_bounded_i32(y);
    const f32 fx = x - static_cast<f32>(ix), fy = y - static_cast<f32>(iy);
    const f32 receiver = inverse * 1.00002F;
    f32 sum = 0.0F;
    for (i32 row = 0; row < 6; ++row) {
        const f32* const at =
            p.a.shadow + static_cast<u64>(iy + row) * p.a.shadow_side + static_cast<u32>(ix);
        f32 lit = at[0] <= receiver ? 1.0F - fx : 0.0F;
        for (u32 k = 1; k < 5; ++k) lit += at[k] <= receiver ? 1.0F : 0.0F;
        lit += at[5] <= receiver ? fx : 0.0F;
        sum = fma_(lit, row == 0 ? 1.0F - fy : (row == 5 ? fy : 1.0F), sum);
    }
    return sum * (1.0F / 25.0F);
}

/// Sky and sun as pictures show them.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 visible_sky(const light_pass& p, vec3 d) {
    const f32 towards = positive_(dot(d, p.light));
    const f32 glow = fma_(pow_(towards, 400.0F), 1.2F, pow_(towards, 12.0F) * 0.16F);
    return along(sky_gradient(d), vec3{1.0F, 0.86F, 0.66F}, glow);
}

CAROUSEL_HD_INLINE void light_pixel(const light_pass& p, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * p.a.width + x;
    const f32 depth = p.a.in.depth[at];
    const vec3 ray = ray_of_pixel(p, static_cast<f32>(x), static_cast<f32>(y));
    const vec3 d = unit(ray);
    vec3 out{};
    if (!(depth > 0.0F)) {
        out = visible_sky(p, d);
    } else {
        const u32 albedo = p.a.in.albedo[at], packed = p.a.in.material[at];
        const auto linear = [&](u32 shift) { return p.tables->decode[4 * (albedo >> shift & 255U)]; };
        const auto part = [&](u32 shift) {
            return static_cast<f32>(packed >> shift & 255U) * (1.0F / 255.0F);
        };
        const material m{{linear(0), linear(8), linear(16)}, part(8), part(0), part(16), part(24) * 15.9375F};
        const lobes c = lobes_of(m);
        const vec3 v = d * -1.0F, n = unpack_normal(p.a.in.normal[at]);
        const vec3 point = along(p.rays.eye, ray, 1.0F / depth);
        const f32 n_v = clamp_(dot(n, v), 1.0e-3F, 1.0F);

        out = reflect_light(m, c, n, v, p.light);
        if (max_(out.x, max_(out.y, out.z)) > 0.0F) out = out * (p.a.sun * sunlit(p, point, n));

        // The alpha of the base colour is the openness of the material's occlusion map.
        const f32 open = (p.a.occlusion_radius > 0.0F ? mean_openness(p, x, y, depth) : 1.0F) *
                         (static_cast<f32>(albedo >> 24) * (1.0F / 255.0F));
        // Lagarde and de Rousiers 2014, listing 26: occlusion of the reflection
        const f32 open_mirror =
            clamp_(pow_(n_v + open, exp2_(fma_(-16.0F, m.roughness, -1.0F))) - 1.0F + open, 0.0F, 1.0F);
        const vec3 r = along(d, n, 2.0F * dot(n, v));
        const split_sum s = split_sum_at(*p.a.sky, n_v, m.roughness);
        vec3 sky = c.diffuse * diffuse_sky(*p.a.sky, n) * open;
        const vec3 mirror{fma_(c.specular.x, s.scale, s.bias), fma_(c.specular.y, s.scale, s.bias),
                          fma_(c.specular.z, s.scale, s.bias)};
        sky = sky + mirror * reflected_sky(*p.a.sky, r, m.roughness) * open_mirror;
        const f32 coat = m.clearcoat * mix(0.04F, 1.0F, schlick_weight(n_v));
        sky = mix(sky, reflected_sky(*p.a.sky, r, 0.06F) * open_mirror, coat);
        out = along(out, sky, p.a.scene.ambient);
        out = along(out, m.albedo, m.emission);
        if (p.a.in.emission != nullptr) {
            const vec3 emission = unpack_emission(p.a.in.emission[at]);
            out = p.a.in.normal[at] == unlit_normal ? emission : out + emission;
        }
        if (p.a.fog > 0.0F) {
            const f32 far = p.a.fog * sqrt_(dot(ray, ray)) / depth;
            out = mix(visible_sky(p, d), out, exp_(-(far * far)));
        }
    }
    f32* const to = p.a.radiance + 4 * at;
    to[0] = out.x, to[1] = out.y, to[2] = out.z, to[3] = 1.0F;
}

}  // namespace carousel::kernels::body
