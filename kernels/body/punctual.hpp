#pragma once
// The lights of a mesh file.

#include "kernels/body/reflectance.hpp"
#include "kernels/looks.hpp"

namespace carousel::kernels::body {

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
