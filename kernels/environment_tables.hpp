#pragma once
// How the tables of image-based light are computed from the light of each direction, with the kernels' own
// arithmetic: sums in a fixed order, no library functions.

#include "kernels/body/sky.hpp"

namespace carousel::kernels::body {

/// Point `i` of `count` of the Hammersley set: i / count, and the bits of i mirrored (van der Corput).
struct sample_point {
    f32 x, y;
};
[[nodiscard]] inline sample_point hammersley(u32 i, u32 count) {
    u32 bits = i;
    bits = bits << 16 | bits >> 16;
    bits = (bits & 0x55555555U) << 1 | (bits & 0xaaaaaaaaU) >> 1;
    bits = (bits & 0x33333333U) << 2 | (bits & 0xccccccccU) >> 2;
    bits = (bits & 0x0f0f0f0fU) << 4 | (bits & 0xf0f0f0f0U) >> 4;
    bits = (bits & 0x00ff00ffU) << 8 | (bits & 0xff00ff00U) >> 8;
    return {static_cast<f32>(i) / static_cast<f32>(count),
            static_cast<f32>(bits >> 8) * (1.0F / 16777216.0F)};
}
/// A half vector around +z, distributed as GGX times its cosine (Karis 2013).
[[nodiscard]] inline vec3 sample_ggx(sample_point p, f32 alpha) {
    const sine_cosine turn = sine_and_cosine(6.283185307179586 * p.x);
    const f32 cosine = sqrt_((1.0F - p.y) / fma_(alpha * alpha - 1.0F, p.y, 1.0F));
    const f32 sine = sqrt_(positive_(1.0F - cosine * cosine));
    return {sine * static_cast<f32>(turn.cosine), sine * static_cast<f32>(turn.sine), cosine};
}

inline void fill_split_sum(environment& to) {
    constexpr u32 samples = 1024;
    for (u32 y = 0; y < split_sum_side; ++y) {
        for (u32 x = 0; x < split_sum_side; ++x) {
            const f32 n_v = max_(static_cast<f32>(x) / static_cast<f32>(split_sum_side - 1), 1.0e-3F);
            const f32 roughness =
                max_(static_cast<f32>(y) / static_cast<f32>(split_sum_side - 1), least_roughness);
            const f32 alpha = roughness * roughness;
            const vec3 v{sqrt_(positive_(1.0F - n_v * n_v)), 0.0F, n_v};
            f32 scale = 0.0F, bias = 0.0F;
            for (u32 i = 0; i < samples; ++i) {
                const vec3 h = sample_ggx(hammersley(i, samples), alpha);
                const f32 v_h = dot(v, h), n_l = fma_(2.0F * v_h, h.z, -v.z);
                if (!(n_l > 0.0F) || !(v_h > 0.0F)) continue;
                const f32 weight = visibility_smith(n_l, n_v, alpha) * 4.0F * n_l * v_h / h.z;
                const f32 fresnel = schlick_weight(v_h);
                scale += weight * (1.0F - fresnel);
                bias += weight * fresnel;
            }
            to.split_sum[y][x][0] = scale * (1.0F / samples);
            to.split_sum[y][x][1] = bias * (1.0F / samples);
        }
    }
}

/// The light around the direction n, weighted by the lobe that a surface of this alpha has for n = v = r.
template <typename Light>
[[nodiscard]] vec3 filtered_sky(vec3 n, const vec3* halves, u32 samples, const Light& light, u32 level) {
    const vec3 side = unit(abs_(n.y) < 0.9F ? vec3{n.z, 0.0F, -n.x} : vec3{0.0F, -n.z, n.y});
    const vec3 up{fma_(n.y, side.z, -(n.z * side.y)), fma_(n.z, side.x, -(n.x * side.z)),
                  fma_(n.x, side.y, -(n.y * side.x))};
    vec3 sum{0.0F, 0.0F, 0.0F};
    f32 weights = 0.0F;
    for (u32 i = 0; i < samples; ++i) {
        const vec3 h = along(along(n * halves[i].z, side, halves[i].x), up, halves[i].y);
        const f32 n_h = halves[i].z, n_l = fma_(2.0F * n_h, n_h, -1.0F);
        if (!(n_l > 0.0F)) continue;
        sum = along(sum, light(unit(h * (2.0F * n_h) - n), level), n_l);
        weights += n_l;
    }
    return sum * (1.0F / weights);
}

template <typename Light>
void fill_sky(environment& to, const Light& light) {
    constexpr u32 most = 96;
    for (u32 level = 0; level < sky_levels; ++level) {
        const f32 roughness = static_cast<f32>(level) / static_cast<f32>(sky_levels - 1);
        const u32 samples = level == 0 ? 1 : most;
        vec3 halves[most];
        for (u32 i = 0; i < samples; ++i)
            halves[i] = level == 0 ? vec3{0.0F, 0.0F, 1.0F}
                                   : sample_ggx(hammersley(i, samples), roughness * roughness);
        for (u32 y = 0; y < sky_pitch; ++y) {
            for (u32 x = 0; x < sky_pitch; ++x) {
                const f32 u = (static_cast<f32>(x) - 0.5F) / static_cast<f32>(sky_side),
                          v = (static_cast<f32>(y) - 0.5F) / static_cast<f32>(sky_side);
                const vec3 c = filtered_sky(sky_direction(u, v), halves, samples, light, level);
                f32* const out = to.sky[level][y][x];
                out[0] = c.x, out[1] = c.y, out[2] = c.z, out[3] = 1.0F;
            }
        }
    }
}

template <typename Light>
void fill_harmonics(environment& to, const Light& light) {
    constexpr u32 samples = 4096;
    f64 sums[9][3] = {};
    for (u32 i = 0; i < samples; ++i) {
        const sample_point p = hammersley(i, samples);
        const sine_cosine turn = sine_and_cosine(6.283185307179586 * p.x);
        const f32 y = fma_(-2.0F, p.y, 1.0F), flat = sqrt_(positive_(1.0F - y * y));
        const vec3 d{flat * static_cast<f32>(turn.cosine), y, flat * static_cast<f32>(turn.sine)};
        const vec3 c = light(d, sky_levels);
        const f64 basis[9] = {1.0,
                              d.y,
                              d.z,
                              d.x,
                              d.x * d.y,
                              d.y * d.z,
                              3.0 * d.z * d.z - 1.0,
                              d.x * d.z,
                              d.x * d.x - d.y * d.y};
        for (u32 k = 0; k < 9; ++k) {
            sums[k][0] += basis[k] * c.x;
            sums[k][1] += basis[k] * c.y;
            sums[k][2] += basis[k] * c.z;
        }
    }
    // Per band: the squared constant of the basis function, times the cosine lobe's factor (pi, 2 pi / 3, pi
    // / 4), times 4 pi / samples, divided by pi.
    constexpr f64 c0 = 1.0, c1 = 2.0, c2 = 15.0 / 4.0, c20 = 5.0 / 16.0, c22 = 15.0 / 16.0;
    const f64 factors[9] = {c0, c1, c1, c1, c2, c2, c20, c2, c22};
    for (u32 k = 0; k < 9; ++k) {
        for (u32 i = 0; i < 3; ++i) to.harmonics[k][i] = static_cast<f32>(sums[k][i] * factors[k] / samples);
        to.harmonics[k][3] = 0.0F;
    }
}

}  // namespace carousel::kernels::body

namespace carousel::kernels {

/// `light(d, level)`: the light from the unit vector `d`; level 0 to sky_levels - 1 is that of
/// environment::sky, sky_levels stands for diffuse light. With a higher level, more samples are averaged.
template <typename Light>
void fill_environment(environment& to, const Light& light) {
    body::fill_harmonics(to, light);
    body::fill_split_sum(to);
    body::fill_sky(to, light);
}

}  // namespace carousel::kernels
