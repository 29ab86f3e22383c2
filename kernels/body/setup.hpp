#pragma once
// One triangle on the screen: winding, bounding box, class, integer edges with the top-left rule, and the
// visibility key. An edge function's value is exact in 32 bits if the bounding box is at most 127 pixels, and
// in 64 bits for every triangle within the guard band. So edge functions of both widths give the same pixels.
// For the depth, the values of the edge functions are converted to float, and both widths give the same
// float.

#include "kernels/body/transform.hpp"

namespace carousel::kernels::body {

inline constexpr u64 empty_key = ~0ULL;  ///< the key of a pixel without a triangle; larger than any other key
inline constexpr i32 narrow_limit = 127 * subpixels;  ///< side of the largest box for which edge functions
                                                      ///< with 32 bits are exact
inline constexpr i32 small_side = 64;  ///< in pixels: the limit for "small" boxes, which one GPU thread draws
inline constexpr i32 small_area = 96;

enum class triangle_class : u32 { small, large, culled, not_finite };

/// The pixels of the picture whose centres lie in the bounding box; both ends are included. Empty if x1 < x0
/// or y1 < y0.
struct pixel_box {
    i32 x0, y0, x1, y1;
    [[nodiscard]] CAROUSEL_HD_INLINE bool empty() const { return x1 < x0 || y1 < y0; }
};

/// A front-facing triangle. The corners a, b, c are ordered so that the edge functions are positive inside
/// the triangle (y points down).
struct screen_triangle {
    i32 ax, ay, bx, by, cx, cy;
    f32 wa, wb, wc;  ///< 1/w
};

[[nodiscard]] CAROUSEL_HD_INLINE screen_triangle make_triangle(const screen_vertex& p, const screen_vertex& q,
                                                               const screen_vertex& r) {
    return {p.x, p.y, r.x, r.y, q.x, q.y, p.inverse_w, r.inverse_w, q.inverse_w};
}

/// Twice the area in square subpixels; <= 0 for a back face or a degenerate triangle. The area fits in 32
/// bits for narrow() triangles.
template <typename Int = i64>
[[nodiscard]] CAROUSEL_HD_INLINE Int double_area(const screen_triangle& t) {
    return static_cast<Int>(t.bx - t.ax) * (t.cy - t.ay) - static_cast<Int>(t.by - t.ay) * (t.cx - t.ax);
}

[[nodiscard]] CAROUSEL_HD_INLINE i32 min3(i32 a, i32 b, i32 c) { return min_(min_(a, b), c); }
[[nodiscard]] CAROUSEL_HD_INLINE i32 max3(i32 a, i32 b, i32 c) { return max_(max_(a, b), c); }

[[nodiscard]] CAROUSEL_HD_INLINE pixel_box box_of(const screen_triangle& t, i32 width, i32 height) {
    constexpr i32 half = subpixels / 2;
    return {max_((min3(t.ax, t.bx, t.cx) + half - 1) >> 8, 0),
            max_((min3(t.ay, t.by, t.cy) + half - 1) >> 8, 0),
            min_((max3(t.ax, t.bx, t.cx) - half) >> 8, width - 1),
            min_((max3(t.ay, t.by, t.cy) - half) >> 8, height - 1)};
}

/// True if edge functions with 32 bits are exact for every pixel centre of the bounding box.
[[nodiscard]] CAROUSEL_HD_INLINE bool narrow(const screen_triangle& t) {
    return (u32{max3(t.ax, t.bx, t.cx) - min3(t.ax, t.bx, t.cx) <= narrow_limit} &
            u32{max3(t.ay, t.by, t.cy) - min3(t.ay, t.by, t.cy) <= narrow_limit}) != 0;
}

/// True if the double area is positive. Exact for all coordinates within the limit: 51 bits at most.
[[nodiscard]] CAROUSEL_HD_INLINE bool faces_front(const screen_triangle& t) {
#if defined(__CUDA_ARCH__)
    if (narrow(t)) return double_area<i32>(t) > 0;
    return double_area<i64>(t) > 0;
#else
    // f64 is also exact. This form is used because instruction sets below AVX-512 have no vector instruction
    // for products of 64-bit integers.
    const f64 ux = t.bx - t.ax, uy = t.by - t.ay, vx = t.cx - t.ax, vy = t.cy - t.ay;
    return ux * vy > uy * vx;
#endif
}

/// The vertex stage's class of a triangle. Triangles that need clipping are "large" regardless of their size.
/// The function has no branches, because the CPU runs it on vectors of triangles.
[[nodiscard]] CAROUSEL_HD_INLINE triangle_class classify(const screen_vertex& p, const screen_vertex& q,
                                                         const screen_vertex& r, i32 width, i32 height) {
    const u32 any = p.outcode | q.outcode | r.outcode;
    const u32 all = p.outcode & q.outcode & r.outcode;
    const screen_triangle t = make_triangle(p, q, r);
    const pixel_box box = box_of(t, width, height);
    const i32 w = box.x1 - box.x0 + 1, h = box.y1 - box.y0 + 1;
    const u32 hidden = u32{w <= 0} | u32{h <= 0} | u32{!faces_front(t)};
    const u32 fits = u32{w <= small_side} & u32{h <= small_side} & u32{narrow(t)};
    // The product can overflow only if the box is not small; in that case the result is not used.
    const u32 little = u32{min_(w, small_side) * min_(h, small_side) <= small_area};
    u32 result =
        fits & little ? static_cast<u32>(triangle_class::small) : static_cast<u32>(triangle_class::large);
    result = hidden ? static_cast<u32>(triangle_class::culled) : result;
    result = any & out_needs_clip ? static_cast<u32>(triangle_class::large) : result;
    result = all & out_any_side ? static_cast<u32>(triangle_class::culled) : result;
    result = any & out_not_finite ? static_cast<u32>(triangle_class::not_finite) : result;
    return static_cast<triangle_class>(result);
}

/// The values of the three edge functions at one pixel centre, and their steps to the next pixel. Each edge
/// belongs to the opposite corner: e[0] is the edge b -> c and belongs to corner a. e[i] / area is the
/// barycentric coordinate of the corner. A pixel is covered if e[i] + bias[i] >= 0 for all i.
template <typename Int>
struct edge_functions {
    Int e[3], step_x[3], step_y[3];
    i32 bias[3];
};

template <typename Int>
CAROUSEL_HD_INLINE void one_edge(edge_functions<Int>& out, int i, Int x0, Int y0, Int x1, Int y1) {
    const Int dx = x1 - x0, dy = y1 - y0;
    out.e[i] = dy * x0 - dx * y0;  // the function's value at the origin, which is the centre of the pixel
    out.step_x[i] = -dy * subpixels;
    out.step_y[i] = dx * subpixels;
    out.bias[i] = dy < 0 || (dy == 0 && dx > 0) ? 0 : -1;
}

/// `Int` may be i32 only for narrow() triangles and for pixels of their bounding box.
template <typename Int>
[[nodiscard]] CAROUSEL_HD_INLINE edge_functions<Int> edges_at(const screen_triangle& t, i32 pixel_x,
                                                              i32 pixel_y) {
    const i32 ox = pixel_x * subpixels + subpixels / 2, oy = pixel_y * subpixels + subpixels / 2;
    const Int ax = t.ax - ox, ay = t.ay - oy, bx = t.bx - ox, by = t.by - oy, cx = t.cx - ox, cy = t.cy - oy;
    edge_functions<Int> out;
    one_edge<Int>(out, 0, bx, by, cx, cy);
    one_edge<Int>(out, 1, cx, cy, ax, ay);
    one_edge<Int>(out, 2, ax, ay, bx, by);
    return out;
}

/// Depth (1/w) over a triangle: wa + eb/area * (wb - wa) + ec/area * (wc - wa).
struct depth_plane {
    f32 inverse_area, wa, to_b, to_c;
};
/// `Int` must be able to represent twice the triangle's area, so it may be i32 only for narrow() triangles.
template <typename Int>
[[nodiscard]] CAROUSEL_HD_INLINE depth_plane make_depth(const screen_triangle& t, Int area) {
    return {1.0F / static_cast<f32>(area), t.wa, t.wb - t.wa, t.wc - t.wa};
}

/// Upper bound of a triangle's depth over at most 64 x 64 pixels: if everything visible in those pixels is
/// nearer, the triangle need not be drawn.
struct depth_bound {
    f32 nearest;                ///< upper bound of every pixel's depth (1/w)
    f32 first, step_x, step_y;  ///< the depth at the offset (x, y) from the pixel of the edge functions is at
                                ///< most first + x * step_x + y * step_y
};
/// The bound is the smaller of two bounds: the depth of the nearest corner, and the largest value of the
/// depth plane over the pixels. The second bound is the lower one if corners lie far outside these pixels.
/// Both bounds are raised by more than the rounding error of their computation and of depth_bits(). The
/// computation of the plane has about twenty roundings, each of which loses at most 2^-24 of the sum of the
/// terms. This sum covers the first pixel and 64 pixels in each direction; within the triangle no term
/// exceeds the difference between the depths of two corners. The products are computed in the order of
/// depth_bits(), so that values too small for a float underflow in both functions.
[[nodiscard]] CAROUSEL_HD_INLINE f32 nearest_corner(const screen_triangle& t) {
    return max_(max_(t.wa, t.wb), t.wc) * 1.0001F;
}
template <typename Int>
[[nodiscard]] CAROUSEL_HD_INLINE depth_bound make_depth_bound(const screen_triangle& t, const depth_plane& d,
                                                              const edge_functions<Int>& e) {
    const auto of_b = [&](Int edge) { return static_cast<f32>(edge) * d.inverse_area * d.to_b; };
    const auto of_c = [&](Int edge) { return static_cast<f32>(edge) * d.inverse_area * d.to_c; };
    const f32 at_b = of_b(e.e[1]), at_c = of_c(e.e[2]);
    const f32 x_b = of_b(e.step_x[1]), x_c = of_c(e.step_x[2]), y_b = of_b(e.step_y[1]),
              y_c = of_c(e.step_y[2]);
    const f32 terms = d.wa + abs_(d.to_b) + abs_(d.to_c) + abs_(at_b) + abs_(at_c) +
                      64.0F * (abs_(x_b) + abs_(x_c) + abs_(y_b) + abs_(y_c));
    return {nearest_corner(t), d.wa + at_b + at_c + terms * 4e-6F, x_b + x_c, y_b + y_c};
}
/// Upper bound of the depth over `columns` x `rows` pixels from (x, y) on.
[[nodiscard]] CAROUSEL_HD_INLINE f32 nearest_among(const depth_bound& b, i32 x, i32 y, i32 columns,
                                                   i32 rows) {
    const f32 along = static_cast<f32>(columns - 1) * b.step_x, down = static_cast<f32>(rows - 1) * b.step_y;
    const f32 first = b.first + static_cast<f32>(x) * b.step_x + static_cast<f32>(y) * b.step_y;
    return min_(first + positive_(along) + positive_(down), b.nearest);  // if the value is NaN, the corner's
                                                                         // bound is used
}

/// Returns the upper half of the visibility key; a nearer pixel has a smaller value.
[[nodiscard]] CAROUSEL_HD_INLINE u32 depth_bits(const depth_plane& d, f32 eb, f32 ec) {
    const f32 z = fma_(ec * d.inverse_area, d.to_c, fma_(eb * d.inverse_area, d.to_b, d.wa));
    return ~bits_of(positive_(z));
}
[[nodiscard]] CAROUSEL_HD_INLINE u64 make_key(u32 depth, u32 id) {
    return static_cast<u64>(depth) << 32 | id;
}

}  // namespace carousel::kernels::body
