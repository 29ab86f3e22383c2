#pragma once
// What a pixel of the G-buffer holds, and the geometry of a pixel's ray. All encodings are integers, so that
// the planes have the same bytes on every device.

#include "kernels/body/matrix.hpp"

namespace carousel::kernels::body {

[[nodiscard]] CAROUSEL_HD_INLINE vec3 operator+(vec3 a, vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
[[nodiscard]] CAROUSEL_HD_INLINE vec3 operator-(vec3 a, vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
[[nodiscard]] CAROUSEL_HD_INLINE vec3 operator*(vec3 a, vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
[[nodiscard]] CAROUSEL_HD_INLINE vec3 operator*(vec3 a, f32 s) { return {a.x * s, a.y * s, a.z * s}; }
/// a + b * s, each component with one rounding.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 along(vec3 a, vec3 b, f32 s) {
    return {fma_(b.x, s, a.x), fma_(b.y, s, a.y), fma_(b.z, s, a.z)};
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 mix(f32 a, f32 b, f32 t) { return fma_(b - a, t, a); }
[[nodiscard]] CAROUSEL_HD_INLINE vec3 mix(vec3 a, vec3 b, f32 t) { return along(a, b - a, t); }
[[nodiscard]] CAROUSEL_HD_INLINE vec3 unit(vec3 v) {
    const f32 square = dot(v, v);
    return v * (1.0F / sqrt_(square > 0.0F ? square : 1.0F));
}
/// The cubic Hermite step 3t^2 - 2t^3 between two edges.
[[nodiscard]] CAROUSEL_HD_INLINE f32 smooth_step(f32 low, f32 high, f32 x) {
    const f32 t = clamp_((x - low) / (high - low), 0.0F, 1.0F);
    return t * t * fma_(-2.0F, t, 3.0F);
}

/// The first three of four floats at an address that is a multiple of 16. A GPU reads and writes all four at
/// once; the fourth becomes 1.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 load_color(const f32* at) {
#if defined(__CUDA_ARCH__)
    const float4 c = *reinterpret_cast<const float4*>(at);
    return {c.x, c.y, c.z};
#else
    return {at[0], at[1], at[2]};
#endif
}
CAROUSEL_HD_INLINE void store_color(f32* at, vec3 c) {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<float4*>(at) = {c.x, c.y, c.z, 1.0F};
#else
    at[0] = c.x, at[1] = c.y, at[2] = c.z, at[3] = 1.0F;
#endif
}

/// A unit vector in 32 bits: octahedral coordinates of 16 bits each (Meyer et al. 2010; Cigolle et al. 2014,
/// "oct32"). Error of the direction: at most 8e-5 radians.
[[nodiscard]] CAROUSEL_HD_INLINE u32 pack_normal(vec3 n) {
    const f32 sum = abs_(n.x) + abs_(n.y) + abs_(n.z);
    const f32 over = 1.0F / (sum > 0.0F ? sum : 1.0F);
    f32 x = n.x * over, y = n.y * over;
    const f32 folded_x = 1.0F - abs_(y), folded_y = 1.0F - abs_(x);
    const bool below = n.z < 0.0F;
    x = below ? (x < 0.0F ? -folded_x : folded_x) : x;
    y = below ? (y < 0.0F ? -folded_y : folded_y) : y;
    const u32 a = static_cast<u32>(to_i32(fma_(clamp_(x, -1.0F, 1.0F), 32767.0F, 32767.5F))),
              b = static_cast<u32>(to_i32(fma_(clamp_(y, -1.0F, 1.0F), 32767.0F, 32767.5F)));
    return a | b << 16;
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 unpack_normal(u32 packed) {
    f32 x = static_cast<f32>(packed & 0xffffU) * (1.0F / 32767.0F) - 1.0F;
    f32 y = static_cast<f32>(packed >> 16) * (1.0F / 32767.0F) - 1.0F;
    const f32 z = 1.0F - abs_(x) - abs_(y);
    const f32 folded_x = 1.0F - abs_(y), folded_y = 1.0F - abs_(x);
    const bool below = z < 0.0F;
    const f32 fx = x < 0.0F ? -folded_x : folded_x, fy = y < 0.0F ? -folded_y : folded_y;
    x = below ? fx : x;
    y = below ? fy : y;
    return unit({x, y, z});
}

/// The rays of a camera: the ray through picture position (x, y), -1..1 with y up, is eye + w * (forward + x
/// * right
/// + y * up), where w is the view depth.
struct camera_rays {
    vec3 eye, forward, right, up;
};
/// Throws nothing; with a degenerate camera the result contains NaN, as view_projection().
[[nodiscard]] inline camera_rays make_rays(const kernels::camera_state& c, u32 width, u32 height) {
    kernels::camera_state still = c;
    still.jitter[0] = still.jitter[1] = 0.0F;
    const matrix34 m = view_projection(still, width, height);
    const auto row = [&m](int i) { return vec3{m.m[4 * i], m.m[4 * i + 1], m.m[4 * i + 2]}; };
    // The rows of the matrix are orthogonal: a row divided by its squared length is its column of the
    // inverse.
    const vec3 x = row(0), y = row(1);
    camera_rays rays{{c.eye[0], c.eye[1], c.eye[2]}, row(2), x * (1.0F / dot(x, x)), y * (1.0F / dot(y, y))};
    if (c.jitter[0] != 0.0F || c.jitter[1] != 0.0F)
        rays.forward = along(along(rays.forward, rays.right, -2.0F * c.jitter[0] / static_cast<f32>(width)),
                             rays.up, 2.0F * c.jitter[1] / static_cast<f32>(height));
    return rays;
}
/// The direction of a pixel's ray with the view depth 1; not a unit vector.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 ray_at(const camera_rays& r, f32 x, f32 y) {
    return along(along(r.forward, r.right, x), r.up, y);
}

/// The camera of the shadow map: far away in the direction of the light, with a view that contains a sphere
/// of `radius` around the scene's target.
[[nodiscard]] inline kernels::camera_state light_camera(const kernels::scene_state& s, f32 radius) {
    constexpr f32 distance = 12.0F;  // in radii: nearly parallel rays
    kernels::camera_state c;
    const vec3 l = unit({s.light[0], s.light[1], s.light[2]});
    const f32 to[3] = {l.x, l.y, l.z};
    for (int i = 0; i < 3; ++i) {
        c.target[i] = s.camera.target[i];
        c.eye[i] = fma_(to[i], distance * radius, s.camera.target[i]);
        c.up[i] = 0.0F;
    }
    c.up[abs_(l.y) < 0.99F ? 1 : 2] = 1.0F;
    c.fov_y = 0.1666F;  // twice the arc tangent of 1 / 12
    c.near = (distance - 3.0F) * radius;
    return c;
}

}  // namespace carousel::kernels::body
