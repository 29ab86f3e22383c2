#pragma once
// Clips one triangle at the near plane and at the guard band. Two triangles that share an edge must cut it at
// the same point, or a crack appears. Therefore the cut point is computed only from the edge's two end
// points, and their values determine which of them is used as the first one. Neither the triangle's winding
// nor the indices determine this, because meshes repeat vertices at seams. Whether a point is inside is
// determined by the same test that sets the outcode.

#include "kernels/body/transform.hpp"

namespace carousel::kernels::body {

inline constexpr u32 max_clipped_vertices = 8;  // a triangle has 3 corners, and each of the five planes can
                                                // add one

/// Plane 0 is near, 1..4 the guard band. inside_plane() makes the comparison that sets the outcode;
/// plane_distance() returns the signed distance in double, from which the cut point is computed.
[[nodiscard]] CAROUSEL_HD_INLINE bool inside_plane(const clip_vertex& c, const viewport& v, u32 plane) {
    switch (plane) {
        case 0:
            return !(c.w < v.near);
        case 1:
            return !(-c.x > v.guard_x * c.w);
        case 2:
            return !(c.x > v.guard_x * c.w);
        case 3:
            return !(-c.y > v.guard_y * c.w);
        default:
            return !(c.y > v.guard_y * c.w);
    }
}
[[nodiscard]] CAROUSEL_HD_INLINE f64 plane_distance(const clip_vertex& c, const viewport& v, u32 plane) {
    switch (plane) {
        case 0:
            return f64(c.w) - f64(v.near);
        case 1:
            return f64(v.guard_x) * f64(c.w) + f64(c.x);
        case 2:
            return f64(v.guard_x) * f64(c.w) - f64(c.x);
        case 3:
            return f64(v.guard_y) * f64(c.w) + f64(c.y);
        default:
            return f64(v.guard_y) * f64(c.w) - f64(c.y);
    }
}

[[nodiscard]] CAROUSEL_HD_INLINE bool comes_first(const clip_vertex& a, const clip_vertex& b) {
    if (a.x != b.x) return a.x < b.x;
    if (a.y != b.y) return a.y < b.y;
    return a.w < b.w;
}

[[nodiscard]] CAROUSEL_HD_INLINE clip_vertex cut(clip_vertex a, clip_vertex b, const viewport& v, u32 plane) {
    if (!comes_first(a, b)) {
        const clip_vertex t = a;
        a = b;
        b = t;
    }
    const f64 da = plane_distance(a, v, plane), db = plane_distance(b, v, plane);
    f64 s = da / (da - db);
    s = s > 0.0 ? s : 0.0;
    s = s < 1.0 ? s : 1.0;
    clip_vertex p{static_cast<f32>(f64(a.x) + s * (f64(b.x) - f64(a.x))),
                  static_cast<f32>(f64(a.y) + s * (f64(b.y) - f64(a.y))),
                  static_cast<f32>(f64(a.w) + s * (f64(b.w) - f64(a.w)))};
    if (plane == 0) p.w = v.near;
    return p;
}

/// On entry the first three elements of `polygon` are the triangle's corners; on return `polygon` contains
/// the clipped polygon. Returns the number of its vertices (0 if nothing is left). The polygon is drawn as
/// the fan (0, i, i + 1).
[[nodiscard]] CAROUSEL_HD_INLINE u32 clip_polygon(clip_vertex (&polygon)[max_clipped_vertices],
                                                  const viewport& v) {
    u32 n = 3;
    for (u32 plane = 0; plane < 5 && n >= 3; ++plane) {
        clip_vertex out[max_clipped_vertices + 1];
        u32 m = 0;
        for (u32 i = 0; i < n; ++i) {
            const clip_vertex a = polygon[i], b = polygon[i + 1 < n ? i + 1 : 0];
            const bool in_a = inside_plane(a, v, plane), in_b = inside_plane(b, v, plane);
            if (in_a && m < max_clipped_vertices) out[m++] = a;
            if (in_a != in_b && m < max_clipped_vertices) out[m++] = cut(a, b, v, plane);
        }
        n = m;
        for (u32 i = 0; i < n; ++i) polygon[i] = out[i];
    }
    return n >= 3 ? n : 0;
}

}  // namespace carousel::kernels::body
