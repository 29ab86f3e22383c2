#pragma once
// Clusters: 128 consecutive triangles of the mesh. At set-up, bounds are computed for each cluster: a sphere,
// a cone of normals, its longest edge and its smallest triangle. In each frame, one test of these bounds can
// prove that none of the cluster's triangles covers a pixel. The test is conservative: if it hides a cluster,
// classify() would cull every triangle of that cluster. The test takes into account all roundings of the
// transform and of the snapping to 1/256 pixel. The test may hide fewer clusters than possible, but never
// hides a visible one, so pictures and counters are the same as without the test. At set-up each cluster also
// gets a list of its vertices, so that each of them is transformed once and a triangle is read as 4 bytes.

#include "kernels/body/transform.hpp"
#include "kernels/mesh_layout.hpp"

namespace carousel::kernels::body {

struct vec3d {
    f64 x, y, z;
};
[[nodiscard]] CAROUSEL_HD_INLINE vec3d minus(const vec3d& a, const vec3d& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
[[nodiscard]] CAROUSEL_HD_INLINE f64 dot3(const vec3d& a, const vec3d& b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
[[nodiscard]] CAROUSEL_HD_INLINE f64 length(const vec3d& a) { return sqrt_(dot3(a, a)); }
[[nodiscard]] CAROUSEL_HD_INLINE vec3d cross3(const vec3d& a, const vec3d& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

struct corners3d {
    vec3d p[3];
    bool usable;    ///< all indices are in range, and all coordinates are finite
    bool has_area;  ///< no two corners of a triangle coincide (if they did, they would coincide on the
                    ///< screen, too)
};
[[nodiscard]] CAROUSEL_HD_INLINE corners3d triangle_corners(const mesh_view& m, u32 triangle) {
    corners3d c{};
    c.usable = true;
    for (u32 k = 0; k < 3; ++k) {
        const u32 i = m.indices[static_cast<u64>(triangle) * 3 + k];
        if (i >= m.counts.vertex_count) return {{}, false, false};
        const f32* const p = m.positions + static_cast<u64>(i) * 3;
        c.usable = c.usable && is_finite(p[0]) && is_finite(p[1]) && is_finite(p[2]);
        c.p[k] = {p[0], p[1], p[2]};
    }
    const auto apart = [&](const vec3d& a, const vec3d& b) { return a.x != b.x || a.y != b.y || a.z != b.z; };
    c.has_area = apart(c.p[0], c.p[1]) && apart(c.p[1], c.p[2]) && apart(c.p[2], c.p[0]);
    return c;
}

/// Bounds of one cluster; all zero (never hidden) if any of its triangles has an index out of range or a
/// coordinate that is not finite, or if the numbers are too large for the test. Sums are computed in the
/// order of the mesh, so the resulting bytes are the same on every device.
[[nodiscard]] CAROUSEL_HD_INLINE cluster_bounds bound_cluster(const mesh_view& m, u32 cluster) {
    const u32 begin = cluster * cluster_triangles,
              end = min_(begin + cluster_triangles, m.counts.triangle_count);
    vec3d low{1e30, 1e30, 1e30}, high{-1e30, -1e30, -1e30}, sum{0, 0, 0};
    f64 least = 1e60, longest = 0;
    for (u32 t = begin; t < end; ++t) {
        const corners3d c = triangle_corners(m, t);
        if (!c.usable) return {};
        for (const vec3d& p : c.p) {
            low = {min_(low.x, p.x), min_(low.y, p.y), min_(low.z, p.z)};
            high = {max_(high.x, p.x), max_(high.y, p.y), max_(high.z, p.z)};
        }
        if (!c.has_area) continue;
        const vec3d u = minus(c.p[1], c.p[0]), v = minus(c.p[2], c.p[0]), n = cross3(u, v);
        const f64 edge = max_(max_(length(u), length(v)), length(minus(u, v))), size = length(n);
        longest = max_(longest, edge);
        least = min_(least, size - 1e-14 * edge * edge);
        if (size > 0) sum = {sum.x + n.x / size, sum.y + n.y / size, sum.z + n.z / size};
    }
    const vec3d centre{0.5 * (low.x + high.x), 0.5 * (low.y + high.y), 0.5 * (low.z + high.z)};
    const f64 whole = length(sum);
    const vec3d axis = whole > 0 ? vec3d{sum.x / whole, sum.y / whole, sum.z / whole} : vec3d{0, 0, 0};
    f64 radius = 0, spread = 1;
    for (u32 t = begin; t < end; ++t) {
        const corners3d c = triangle_corners(m, t);
        for (const vec3d& p : c.p) radius = max_(radius, length(minus(p, centre)));
        if (!c.has_area) continue;
        const vec3d n = cross3(minus(c.p[1], c.p[0]), minus(c.p[2], c.p[0]));
        const f64 size = length(n);
        spread = min_(spread, size > 0 ? dot3(n, axis) / size : -1.0);
    }
    if (!(radius < 1e9) || !(length(centre) < 1e9)) return {};
    const f64 reach = length(centre) + radius;
    // Rounded outward, so that the float values are still bounds: 2e-7 exceeds a float's rounding error.
    return {{static_cast<f32>(centre.x), static_cast<f32>(centre.y), static_cast<f32>(centre.z)},
            static_cast<f32>(radius + 2e-7 * reach + 1e-30),
            {static_cast<f32>(axis.x), static_cast<f32>(axis.y), static_cast<f32>(axis.z)},
            static_cast<f32>(spread - 1e-6),
            static_cast<f32>(longest * (1 + 2e-7)),
            static_cast<f32>(max_(least, 0.0) * (1 - 2e-7)),
            0,
            0};
}

/// Stores a cluster's vertex list in `numbers` (u16[cluster_vertices]: vertex numbers in ascending order,
/// each minus the first vertex number). For each corner of the cluster's triangles, stores in `corners` the
/// position of the corner's vertex in that list. Stores no list (all zero) if an index is out of range, or
/// if the vertices are too many or too far apart.
CAROUSEL_HD_INLINE void list_cluster(const mesh_view& m, u32 cluster, cluster_bounds& bounds, u16* numbers,
                                     u32* corners) {
    const u32 begin = cluster * cluster_triangles,
              end = min_(begin + cluster_triangles, m.counts.triangle_count);
    const u32* const index = m.indices + u64{begin} * 3;
    const u32 all = 3 * (end - begin);
    u32 low = ~0U, high = 0;
    for (u32 i = 0; i < all; ++i) low = min_(low, index[i]), high = max_(high, index[i]);
    u32 count = 0;
    bool fits = high < m.counts.vertex_count && high - low <= 0xffffU;
    const auto place = [&](u32 number) {
        u32 from = 0, to = count;
        while (from < to) {
            const u32 middle = (from + to) / 2;
            if (numbers[middle] < number) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return from;
    };
    for (u32 i = 0; fits && i < all; ++i) {
        const u32 number = index[i] - low, at = place(number);
        if (at < count && numbers[at] == number) continue;
        fits = count < cluster_vertices;
        if (!fits) break;
        for (u32 k = count++; k > at; --k) numbers[k] = numbers[k - 1];
        numbers[at] = static_cast<u16>(number);
    }
    for (u32 t = 0; t < end - begin; ++t)
        corners[t] = fits ? place(index[3 * t] - low) | place(index[3 * t + 1] - low) << 8 |
                                place(index[3 * t + 2] - low) << 16
                          : 0U;
    if (!fits) count = 0;
    for (u32 k = count; k < cluster_vertices; ++k) numbers[k] = 0;
    bounds.first_vertex = fits ? low : 0U;
    bounds.vertex_count = count;
}

/// Does all set-up work for one cluster. Each of the three arrays contains the data of all clusters of the
/// mesh. `moves`: the cluster has no bounds, because they would hold for one pose only.
CAROUSEL_HD_INLINE void describe_cluster(const mesh_view& m, bool moves, u32 cluster, cluster_bounds* bounds,
                                         u16* numbers, u32* corners) {
    cluster_bounds b = moves ? cluster_bounds{} : bound_cluster(m, cluster);
    list_cluster(m, cluster, b, numbers + u64{cluster} * cluster_vertices,
                 corners + u64{cluster} * cluster_triangles);
    bounds[cluster] = b;
}

/// The box of some vertices of a cluster in a pose.
struct moved_box {
    vec3 low, high;
    bool finite;  ///< of all vertices
};
[[nodiscard]] CAROUSEL_HD_INLINE moved_box empty_box() {
    return {{3e38F, 3e38F, 3e38F}, {-3e38F, -3e38F, -3e38F}, true};
}
[[nodiscard]] CAROUSEL_HD_INLINE moved_box with_vertex(const moved_box& box, const f32* p) {
    return {{min_(box.low.x, p[0]), min_(box.low.y, p[1]), min_(box.low.z, p[2])},
            {max_(box.high.x, p[0]), max_(box.high.y, p[1]), max_(box.high.z, p[2])},
            box.finite && is_finite(p[0]) && is_finite(p[1]) && is_finite(p[2])};
}
/// Number `i` of the vertices that a cluster lists.
[[nodiscard]] CAROUSEL_HD_INLINE u32 listed_vertex(const mesh_view& m, u32 cluster,
                                                   const cluster_bounds& listed, u32 i) {
    return min_(listed.first_vertex + m.local_vertices[u64{cluster} * cluster_vertices + i],
                m.counts.vertex_count - 1U);
}
/// The bounds of a cluster in a pose: the sphere around its box, without a cone of normals, which would cost
/// more than it saves. `listed`: the cluster's vertex list. Zero (never hidden) without such a list, or if a
/// coordinate is not finite or too large for the test.
[[nodiscard]] CAROUSEL_HD_INLINE cluster_bounds moved_bounds(const cluster_bounds& listed,
                                                             const moved_box& box) {
    cluster_bounds out{};
    out.first_vertex = listed.first_vertex, out.vertex_count = listed.vertex_count;
    constexpr f32 most = 5e8F;
    if (listed.vertex_count == 0 || !box.finite || !(box.low.x > -most) || !(box.low.y > -most) ||
        !(box.low.z > -most) || !(box.high.x < most) || !(box.high.y < most) || !(box.high.z < most))
        return out;
    const f32 low[3] = {box.low.x, box.low.y, box.low.z}, high[3] = {box.high.x, box.high.y, box.high.z};
    f32 square = 0.0F;
    for (u32 k = 0; k < 3; ++k) {
        out.centre[k] = 0.5F * (low[k] + high[k]);
        const f32 half = max_(high[k] - out.centre[k], out.centre[k] - low[k]);
        square += half * half;
    }
    // Ten times the rounding errors of the differences, the sum and the root; a square may have underflowed.
    out.radius = sqrt_(square) * (1.0F + 4e-6F) + 1e-18F;
    return out;
}

[[nodiscard]] CAROUSEL_HD_INLINE f32 length3(f32 x, f32 y, f32 z) { return sqrt_(x * x + y * y + z * z); }
[[nodiscard]] CAROUSEL_HD_INLINE f32 row_sum(const f32* row, const cluster_bounds& b) {
    return abs_(row[0] * b.centre[0]) + abs_(row[1] * b.centre[1]) + abs_(row[2] * b.centre[2]) +
           abs_(row[3]);
}

/// True if the whole cluster lies within the view and beyond the near plane, and its distance from their
/// planes exceeds every rounding error. In this case all outcodes are 0.
[[nodiscard]] CAROUSEL_HD_INLINE bool cluster_inside(const cluster_bounds& b, const f32* clip,
                                                     const viewport& view) {
    if (!(b.radius > 0.0F)) return false;
    const f32 *const rx = clip, *const ry = clip + 4, *const rw = clip + 8;
    const f32 lx = length3(rx[0], rx[1], rx[2]), ly = length3(ry[0], ry[1], ry[2]),
              lw = length3(rw[0], rw[1], rw[2]);
    const clip_vertex c = to_clip(clip, {b.centre[0], b.centre[1], b.centre[2]});
    constexpr f32 unit = 6e-6F;  // ten times the largest error that four roundings can add, including the
                                 // rounding of the centre
    const f32 reach_x = lx * b.radius + unit * (row_sum(rx, b) + lx * b.radius),
              reach_y = ly * b.radius + unit * (row_sum(ry, b) + ly * b.radius),
              reach_w = lw * b.radius + unit * (row_sum(rw, b) + lw * b.radius);
    return c.w < 1e30F && c.w - reach_w > view.near * 1.001F &&
           abs_(c.x) + reach_x + reach_w < 0.999F * c.w && abs_(c.y) + reach_y + reach_w < 0.999F * c.w;
}

/// True if drawing all triangles of the cluster would produce no pixel. `clip` is the instance's matrix. The
/// test by sides is true if the sphere lies beyond a plane of the view by more than the rounding error of the
/// transform: all outcodes then share that plane's bit. The test by cone: let (x, y, w) be the rows of the
/// matrix A, and K = adj(A) (A c + t) = det(A) (c - eye). A triangle with the normal n is front-facing where
/// n . K > 0, also for mirrored matrices, and its double area on the screen is n . K / (w0 w1 w2) times half
/// the picture's sides. Corners that move by d subpixels change that area by at most 2d (|ux| + |uy| + |vx| +
/// |vy|) + 8 d^2, where u and v are two sides. If the area is more negative than that bound, no rounding can
/// make the triangle front-facing.
[[nodiscard]] CAROUSEL_HD_INLINE bool cluster_hidden(const cluster_bounds& b, const f32* clip,
                                                     const viewport& view) {
    if (!(b.radius > 0.0F)) return false;
    const f32 *const rx = clip, *const ry = clip + 4, *const rw = clip + 8;
    const f32 lx = length3(rx[0], rx[1], rx[2]), ly = length3(ry[0], ry[1], ry[2]),
              lw = length3(rw[0], rw[1], rw[2]);
    const vec3 centre{b.centre[0], b.centre[1], b.centre[2]};
    const clip_vertex c = to_clip(clip, centre);
    // An upper bound of the rounding error of every vertex's coordinates: there are four roundings, and the
    // values below bound the rounded sums.
    constexpr f32 unit = 6e-7F;
    const f32 error_x = unit * (row_sum(rx, b) + lx * b.radius),
              error_y = unit * (row_sum(ry, b) + ly * b.radius),
              error_w = unit * (row_sum(rw, b) + lw * b.radius);
    const f32 all = error_x + error_y + error_w;
    if (!(all < 1e20F)) return false;
    const f32 reach_x = lx * b.radius + error_x, reach_y = ly * b.radius + error_y,
              reach_w = lw * b.radius + error_w;
    const f32 side_x = reach_x + reach_w + 4.0F * all, side_y = reach_y + reach_w + 4.0F * all;
    if (c.x + c.w < -side_x || c.w - c.x < -side_x || c.y + c.w < -side_y || c.w - c.y < -side_y) return true;
    const f32 least_w = c.w - reach_w - 4.0F * all, most_w = c.w + reach_w + 4.0F * all;
    if (most_w < view.near) return true;

    // The test by cone is made only if all vertices of the cluster are beyond the near plane and within the
    // guard band.
    if (!(b.spread > 0.0F) || !(b.smallest > 1e-30F) || !(least_w > view.near * 1.001F)) return false;
    const f32 inverse = 1.0F / least_w;
    const f32 far_x = (abs_(c.x) + reach_x) * inverse, far_y = (abs_(c.y) + reach_y) * inverse;
    if (!(far_x < 0.9F * view.guard_x) || !(far_y < 0.9F * view.guard_y)) return false;
    const vec3 yw{ry[1] * rw[2] - ry[2] * rw[1], ry[2] * rw[0] - ry[0] * rw[2],
                  ry[0] * rw[1] - ry[1] * rw[0]};
    const vec3 wx{rw[1] * rx[2] - rw[2] * rx[1], rw[2] * rx[0] - rw[0] * rx[2],
                  rw[0] * rx[1] - rw[1] * rx[0]};
    const vec3 xy{rx[1] * ry[2] - rx[2] * ry[1], rx[2] * ry[0] - rx[0] * ry[2],
                  rx[0] * ry[1] - rx[1] * ry[0]};
    const f32 determinant = abs_(rx[0] * yw.x + rx[1] * yw.y + rx[2] * yw.z);
    const vec3 k{c.x * yw.x + c.y * wx.x + c.w * xy.x, c.x * yw.y + c.y * wx.y + c.w * xy.y,
                 c.x * yw.z + c.y * wx.z + c.w * xy.z};
    const f32 squares = lx * ly + ly * lw + lw * lx;
    const f32 k_error = 8.0F * (all * squares + unit * squares * (abs_(c.x) + abs_(c.y) + abs_(c.w)) +
                                unit * lx * ly * lw * b.radius);
    const f32 along = -(k.x * b.axis[0] + k.y * b.axis[1] + k.z * b.axis[2]);
    const f32 square = k.x * k.x + k.y * k.y + k.z * k.z;
    const f32 across = sqrt_(max_(square - along * along, 0.0F) + 4e-6F * square);
    const f32 sine = sqrt_(max_(1.0F - b.spread * b.spread, 0.0F) + 1e-6F);
    // A lower bound of -n . K for every unit normal n and every point of the cluster.
    const f32 behind = along * b.spread - across * sine - determinant * b.radius * 1.0001F - k_error;
    if (!(behind > 0.0F)) return false;
    const f32 area = behind * b.smallest * view.half_width * view.half_height / (most_w * most_w * most_w);
    const f32 moved_x =
        0.51F + view.half_width * (inverse * (error_x + far_x * error_w) + 6e-7F * (far_x + 1.0F));
    const f32 moved_y =
        0.51F + view.half_height * (inverse * (error_y + far_y * error_w) + 6e-7F * (far_y + 1.0F));
    const f32 moved = max_(moved_x, moved_y);
    const f32 wide = view.half_width * b.edge * (lx + far_x * lw) * inverse,
              high = view.half_height * b.edge * (ly + far_y * lw) * inverse;
    return area > 1.01F * (4.0F * moved * (wide + high) + 8.0F * moved * moved);
}

}  // namespace carousel::kernels::body
