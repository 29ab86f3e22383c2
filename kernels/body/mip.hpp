#pragma once
// Mip-mapped textures: the position of each level, the choice of the level for a pixel, and the filtered
// value. No hardware derivatives are used: the change of the texture coordinates from pixel to pixel is
// computed from the triangle itself, and the logarithm that gives the level is computed from the bits of a
// float, so every device selects the same level for the same pixel.

#include "kernels/body/shade.hpp"

namespace carousel::kernels::body {

/// For each corner, the change of its weight from this pixel to the next, divided by the sum of the weights.
/// To get the change of a value per pixel, multiply each corner's change by (the corner's value - the pixel's
/// value) and add the three products. (This is the derivative of a quotient of functions that are linear on
/// the screen.)
struct weight_slopes {
    f32 x[3], y[3];
};
/// Positions have the units of barycentrics_at(); step_x and step_y are the size of a pixel in these units.
[[nodiscard]] CAROUSEL_HD_INLINE weight_slopes slopes_at(f32 x, f32 y, f32 step_x, f32 step_y,
                                                         const clip_vertex& a, const clip_vertex& b,
                                                         const clip_vertex& c) {
    const f32 ax = fma_(-x, a.w, a.x), ay = fma_(-y, a.w, a.y);
    const f32 bx = fma_(-x, b.w, b.x), by = fma_(-y, b.w, b.y);
    const f32 cx = fma_(-x, c.w, c.x), cy = fma_(-y, c.w, c.y);
    const f32 sum = fma_(bx, cy, -(cx * by)) + fma_(cx, ay, -(ax * cy)) + fma_(ax, by, -(bx * ay));
    const f32 over_x = step_x / sum, over_y = step_y / sum;
    return {{fma_(c.w, b.y, -(b.w * c.y)) * over_x, fma_(a.w, c.y, -(c.w * a.y)) * over_x,
             fma_(b.w, a.y, -(a.w * b.y)) * over_x},
            {fma_(b.w, c.x, -(c.w * b.x)) * over_y, fma_(c.w, a.x, -(a.w * c.x)) * over_y,
             fma_(a.w, b.x, -(b.w * a.x)) * over_y}};
}

/// A texture coordinate at a pixel, and its changes to the next pixel in x and to the next pixel in y.
struct moving {
    f32 value, x, y;
};
[[nodiscard]] CAROUSEL_HD_INLINE moving move(const barycentrics& l, const weight_slopes& s, f32 a, f32 b,
                                             f32 c) {
    const f32 value = blend(l, a, b, c);
    const f32 da = a - value, db = b - value, dc = c - value;
    return {value, fma_(s.x[0], da, fma_(s.x[1], db, s.x[2] * dc)),
            fma_(s.y[0], da, fma_(s.y[1], db, s.y[2] * dc))};
}

/// The level in steps of 1/256, from 0 to (levels - 1) * 256. Two squared distances in texels are computed:
/// to the next pixel to the right, and to the next pixel down. The level is half the binary logarithm of the
/// larger one. The logarithm is approximated: the exponent of the float is used as its integer part, and the
/// mantissa of the float as its fraction. The error is at most 0.05 levels.
[[nodiscard]] CAROUSEL_HD_INLINE u32 mip_level(const moving& u, const moving& v, u32 width, u32 height,
                                               u32 levels) {
    const f32 w = static_cast<f32>(width), h = static_cast<f32>(height);
    const f32 ux = u.x * w, vx = v.x * h, uy = u.y * w, vy = v.y * h;
    const f32 square = max_(fma_(ux, ux, vx * vx), fma_(uy, uy, vy * vy));
    const u32 level = (bits_of(clamp_(square, 1.0F, 1.0e12F)) - 0x3f800000U) >> 16;  // NaN: 1
    return min_(level, (levels - 1U) * 256U);
}

/// Limits a field of a texture's record to valid values, because the record may be in memory that another
/// process is filling.
[[nodiscard]] CAROUSEL_HD_INLINE u32 bounded_side(u32 side) {
    return max_(1U, min_(side, max_texture_extent));
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 bounded_levels(u32 levels) {
    return max_(1U, min_(levels, max_texture_levels));
}

/// Interpolates between two levels' filtered values (0..1020).
[[nodiscard]] CAROUSEL_HD_INLINE u32 between(u32 fine, u32 coarse, u32 fraction) {
    return (fine * (256U - fraction) + coarse * fraction + 128U) >> 8;
}

}  // namespace carousel::kernels::body
