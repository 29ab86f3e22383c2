#pragma once
// Metallic-roughness surfaces: the microfacet model of the glTF 2.0 specification, appendix B (Khronos), with
// the functions D of Walter et al. 2007 (GGX), V of Heitz 2014 (height-correlated Smith) and F of Schlick
// 1994. Roughness is perceptual; alpha is its square.

#include "kernels/body/surface.hpp"
#include "kernels/punctual_light.hpp"

namespace carousel::kernels::body {

inline constexpr f32 inverse_pi = 0.318309886F;
/// Below this roughness the highlight of a point light is smaller than a pixel, and D overflows.
inline constexpr f32 least_roughness = 0.045F;

/// Distribution of normals (GGX, Trowbridge-Reitz), for the cosine between normal and half vector.
[[nodiscard]] CAROUSEL_HD_INLINE f32 distribution_ggx(f32 n_h, f32 alpha) {
    const f32 square = alpha * alpha;
    const f32 d = fma_(n_h * n_h, square - 1.0F, 1.0F);
    return square * inverse_pi / (d * d);
}
/// Height-correlated Smith visibility G / (4 n_l n_v), for positive cosines.
[[nodiscard]] CAROUSEL_HD_INLINE f32 visibility_smith(f32 n_l, f32 n_v, f32 alpha) {
    const f32 square = alpha * alpha, rest = 1.0F - square;
    const f32 view = n_l * sqrt_(fma_(n_v * n_v, rest, square));
    const f32 light = n_v * sqrt_(fma_(n_l * n_l, rest, square));
    const f32 sum = view + light;
    return sum > 0.0F ? 0.5F / sum : 0.0F;
}
/// (1 - cosine)^5: Schlick's weight between the reflectance at normal incidence and 1.
[[nodiscard]] CAROUSEL_HD_INLINE f32 schlick_weight(f32 cosine) {
    const f32 m = clamp_(1.0F - cosine, 0.0F, 1.0F), square = m * m;
    return square * square * m;
}

struct material {
    vec3 albedo;  ///< base colour, linear
    f32 metallic, roughness, clearcoat, emission;
};
/// Colours of the two lobes: diffuse, and specular at normal incidence (0.04 for dielectrics).
struct lobes {
    vec3 diffuse, specular;
};
[[nodiscard]] CAROUSEL_HD_INLINE lobes lobes_of(const material& m) {
    return {m.albedo * (1.0F - m.metallic), mix(vec3{0.04F, 0.04F, 0.04F}, m.albedo, m.metallic)};
}

/// Light that reaches the eye from a directional or point light of unit irradiance, including the cosine. The
/// clearcoat is a second specular lobe (KHR_materials_clearcoat) with its own roughness, which darkens the
/// lobes below it by its Fresnel term; `coated` may be false only if there is none.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 reflect_light(const material& m, const lobes& c, vec3 n, vec3 v, vec3 l,
                                                    bool coated = true) {
    const f32 n_l = positive_(dot(n, l)), n_v = max_(dot(n, v), 1.0e-3F);
    const vec3 h = unit(l + v);
    const f32 n_h = clamp_(dot(n, h), 0.0F, 1.0F), weight = schlick_weight(dot(v, h));
    const f32 roughness = max_(m.roughness, least_roughness), alpha = roughness * roughness;
    const f32 lobe = distribution_ggx(n_h, alpha) * visibility_smith(n_l, n_v, alpha);
    const vec3 fresnel = mix(c.specular, vec3{1.0F, 1.0F, 1.0F}, weight);
    const vec3 kept = vec3{1.0F, 1.0F, 1.0F} - fresnel;
    vec3 out = along(c.diffuse * kept * inverse_pi, fresnel, lobe);
    if (coated) {
        constexpr f32 coat_alpha = 0.0036F;  // roughness 0.06
        const f32 coat = m.clearcoat * mix(0.04F, 1.0F, weight);
        const f32 coat_lobe = distribution_ggx(n_h, coat_alpha) * visibility_smith(n_l, n_v, coat_alpha);
        out = out * (1.0F - coat);
        out = along(out, vec3{coat_lobe, coat_lobe, coat_lobe}, coat);
    }
    return out * n_l;
}

/// Attenuation of a punctual light at a distance (KHR_lights_punctual): the inverse square, times a window
/// that reaches 0 at `range`; range 0: no limit.
[[nodiscard]] CAROUSEL_HD_INLINE f32 distance_attenuation(f32 distance, f32 range) {
    const f32 square = max_(distance * distance, 1.0e-4F);
    if (!(range > 0.0F)) return 1.0F / square;
    const f32 part = distance / range, fourth = part * part * part * part;
    return clamp_(1.0F - fourth, 0.0F, 1.0F) / square;
}
/// Attenuation of a spot light (KHR_lights_punctual), from the cosines of the angle to its axis and of its
/// two cone angles.
[[nodiscard]] CAROUSEL_HD_INLINE f32 spot_attenuation(f32 cosine, f32 inner_cosine, f32 outer_cosine) {
    const f32 scale = 1.0F / max_(inner_cosine - outer_cosine, 1.0e-3F);
    const f32 t = clamp_((cosine - outer_cosine) * scale, 0.0F, 1.0F);
    return t * t;
}

/// What a punctual light sends to a point: the unit vector towards the light, and the irradiance.
struct incident_light {
    vec3 towards, irradiance;
};
[[nodiscard]] CAROUSEL_HD_INLINE incident_light incident(const punctual_light& l, vec3 point) {
    const vec3 axis{l.axis[0], l.axis[1], l.axis[2]}, color{l.color[0], l.color[1], l.color[2]};
    if (l.kind == static_cast<u32>(punctual_kind::directional)) return {axis * -1.0F, color};
    const vec3 to = vec3{l.position[0], l.position[1], l.position[2]} - point;
    const vec3 towards = unit(to);
    f32 part = distance_attenuation(sqrt_(dot(to, to)), l.range);
    if (l.kind == static_cast<u32>(punctual_kind::spot))
        part *= spot_attenuation(-dot(towards, axis), l.inner_cosine, l.outer_cosine);
    return {towards, color * part};
}

}  // namespace carousel::kernels::body
