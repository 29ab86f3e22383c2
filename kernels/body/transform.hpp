#pragma once
// One vertex: object space -> clip space (x, y, w) -> fixed-point screen position, 8 subpixel bits.

#include "kernels/body/matrix.hpp"

namespace carousel::kernels::body {

inline constexpr i32 subpixels = 256;
inline constexpr i32 guard_pixels = 32700;              ///< if a corner is farther out than this, the
                                                        ///< triangle is clipped in x or y
inline constexpr i32 screen_limit = 32767 * subpixels;  ///< maximum magnitude of a screen coordinate

/// Outcode bits. A triangle is invisible if one of the first five bits is set for all of its vertices;
/// out_needs_clip selects the bits that require clipping.
enum outcode : u32 {
    out_left = 1,
    out_right = 2,
    out_bottom = 4,
    out_top = 8,
    out_near = 16,
    out_guard = 32,  ///< beyond the guard band
    out_not_finite = 64,
};
inline constexpr u32 out_any_side = 31;
inline constexpr u32 out_needs_clip = out_near | out_guard;

struct viewport {
    f32 half_width, half_height;  ///< half the picture's width and height, in subpixels
    f32 guard_x, guard_y;         ///< |x| <= guard_x * w is inside the guard band
    f32 near;                     ///< w of the near plane
    i32 width, height;            ///< pixels
};

/// If `near` is below 1e-6 or NaN, 1e-6 is used instead, because no point at or behind the eye may be
/// projected.
[[nodiscard]] CAROUSEL_HD_INLINE viewport make_viewport(u32 width, u32 height, f32 near) {
    viewport v{};
    v.width = static_cast<i32>(width);
    v.height = static_cast<i32>(height);
    v.half_width = static_cast<f32>(width) * (subpixels / 2);
    v.half_height = static_cast<f32>(height) * (subpixels / 2);
    v.guard_x = (static_cast<f32>(guard_pixels * subpixels) - v.half_width) / v.half_width;
    v.guard_y = (static_cast<f32>(guard_pixels * subpixels) - v.half_height) / v.half_height;
    v.near = max_(near, 1e-6F);
    return v;
}

struct clip_vertex {
    f32 x, y, w;
};

[[nodiscard]] CAROUSEL_HD_INLINE clip_vertex to_clip(const f32* m, vec3 p) {
    return {fma_(m[0], p.x, fma_(m[1], p.y, fma_(m[2], p.z, m[3]))),
            fma_(m[4], p.x, fma_(m[5], p.y, fma_(m[6], p.z, m[7]))),
            fma_(m[8], p.x, fma_(m[9], p.y, fma_(m[10], p.z, m[11])))};
}

[[nodiscard]] CAROUSEL_HD_INLINE u32 outcode_of(const clip_vertex& c, const viewport& v) {
    u32 code = (c.x < -c.w ? u32{out_left} : 0U) | (c.x > c.w ? u32{out_right} : 0U) |
               (c.y < -c.w ? u32{out_bottom} : 0U) | (c.y > c.w ? u32{out_top} : 0U) |
               (c.w < v.near ? u32{out_near} : 0U);
    code |= abs_(c.x) > v.guard_x * c.w || abs_(c.y) > v.guard_y * c.w ? u32{out_guard} : 0U;
    return code | (is_finite(c.x) && is_finite(c.y) && is_finite(c.w) ? 0U : u32{out_not_finite});
}

/// Screen position of a clip-space vertex. If w is below the near plane, the position is meaningless, but
/// still bounded.
[[nodiscard]] CAROUSEL_HD_INLINE screen_vertex project(const clip_vertex& c, const viewport& v, u32 code) {
    const f32 inverse_w = 1.0F / max_(c.w, v.near);
    const f32 limit = static_cast<f32>(screen_limit);
    const f32 x = fma_(c.x * inverse_w, v.half_width, v.half_width);
    const f32 y = fma_(-(c.y * inverse_w), v.half_height, v.half_height);
    return {round_bounded_i32(clamp_(x, -limit, limit)), round_bounded_i32(clamp_(y, -limit, limit)),
            inverse_w, code};
}

[[nodiscard]] CAROUSEL_HD_INLINE screen_vertex transform_vertex(const f32* clip, vec3 p, const viewport& v) {
    const clip_vertex c = to_clip(clip, p);
    return project(c, v, outcode_of(c, v));
}

}  // namespace carousel::kernels::body
