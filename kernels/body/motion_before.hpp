#pragma once
// Where the surface of a pixel was in the frame before: the copies of a mesh move, and the vertices within it
// (skins, morph targets).

#include "kernels/body/material_surface.hpp"
#include "kernels/body/move.hpp"
#include "kernels/looks.hpp"

namespace carousel::kernels::body {

/// The blocks of a mesh_motion as pointers.
struct surface_motion {
    mesh_motion of;
    u64 id_limit;    ///< ids of opaque triangles are below it
    mesh_view mesh;  ///< null pointers unless the vertices move
    motion_view vertices;
};
[[nodiscard]] inline surface_motion view_motion(const mesh_motion& m) {
    surface_motion s{m, u64{m.copies} * m.mesh.counts.triangle_count, {}, {}};
    s.mesh.counts = m.mesh.counts;
    if (m.vertices.block != nullptr) {
        s.mesh = view_mesh(m.mesh, m.mesh_block);
        s.vertices = kernels::view_motion(m.vertices.layout, m.vertices.block);
    }
    return s;
}

/// A point of the world in the frame before.
struct point_before {
    vec3 at;
    bool seen;   ///< false: it belongs to a copy that was not there
    bool moves;  ///< it belongs to a copy or to vertices that have moved
};

/// The point `p` of the triangle `now`, in the triangle `before`. The weights of the corners follow from the
/// projection onto the triangle's plane (Ericson 2005, section 3.4); without an area, the first corner
/// counts.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 carried_along(const vec3* now, const vec3* before, vec3 p) {
    const vec3 u = now[1] - now[0], v = now[2] - now[0], w = p - now[0];
    const f32 uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), wu = dot(w, u), wv = dot(w, v);
    const f32 area = fma_(uu, vv, -(uv * uv));
    const f32 inverse = area > 0.0F ? 1.0F / area : 0.0F;
    const f32 second = fma_(vv, wu, -(uv * wv)) * inverse, third = fma_(uu, wv, -(uv * wu)) * inverse;
    return along(along(before[0], before[1] - before[0], second), before[2] - before[0], third);
}

/// Model matrices move rigidly and scale uniformly, so the inverse of the linear part is its transpose,
/// divided by the square of the scale. `now`, `before`: of the copy. `deform`: a point of the mesh's space in
/// the frame before; returns whether it has moved.
template <typename Deform>
[[nodiscard]] CAROUSEL_HD_INLINE point_before moved_back(const f32* now, const f32* before, vec3 point,
                                                         const Deform& deform) {
    const vec3 a{now[0], now[4], now[8]}, b{now[1], now[5], now[9]}, c{now[2], now[6], now[10]};
    const vec3 d = (point - vec3{now[3], now[7], now[11]}) * (1.0F / dot(a, a));
    vec3 inside{dot(a, d), dot(b, d), dot(c, d)};
    bool moves = deform(inside);
    const vec3 at = turn(before, inside);
    for (u32 i = 0; i < 12; ++i) moves = moves || now[i] != before[i];
    return {moves ? at + vec3{before[3], before[7], before[11]} : point,
            before[0] != 0.0F || before[4] != 0.0F || before[8] != 0.0F, moves};
}
[[nodiscard]] CAROUSEL_HD_INLINE point_before moved_back(const f32* now, const f32* before, vec3 point) {
    return moved_back(now, before, point, [](vec3&) { return false; });
}

/// A point on the triangle `id` of a mesh whose vertices move.
CAROUSEL_HD_INLINE bool deform_back(const surface_motion& s, u32 id, vec3& point) {
    const vertex_motion& m = s.of.vertices;
    const triangle_place place = place_of(s.mesh, s.id_limit, id);
    vec3 now[3], before[3];
    bool moves = false;
    for (u32 k = 0; k < 3; ++k) {
        now[k] = position_of(moved_vertex(s.vertices, m.now.matrices, m.now.weights, place.vertex[k]));
        before[k] =
            position_of(moved_vertex(s.vertices, m.before.matrices, m.before.weights, place.vertex[k]));
        moves = moves || now[k].x != before[k].x || now[k].y != before[k].y || now[k].z != before[k].z;
    }
    if (moves) point = carried_along(now, before, point);
    return moves;
}

[[nodiscard]] CAROUSEL_HD_INLINE point_before point_before_of(const surface_motion& s, u64 pixel,
                                                              vec3 point) {
    const mesh_motion& m = s.of;
    if (m.triangle == nullptr) return {point, true, false};
    const u64 all = s.id_limit + u64{m.copies} * non_opaque_count(m.mesh.counts);
    const u32 id = m.triangle[pixel];
    if (id >= all) return {point, true, false};
    const u32 copy = copy_of(m.mesh.counts, s.id_limit, id);
    const f32 *const now = m.models + u64{copy} * 16, *const before = m.before + u64{copy} * 12;
    if (m.vertices.block == nullptr) return moved_back(now, before, point);
    return moved_back(now, before, point, [&](vec3& p) { return deform_back(s, id, p); });
}

/// Writes a pixel's part of the matrices and weights that the next frame needs.
CAROUSEL_HD_INLINE void store_motion(const surface_motion& s, u64 pixel, u64 pixels) {
    const mesh_motion& m = s.of;
    if (m.triangle == nullptr) return;
    for (u64 copy = pixel; copy < m.copies; copy += pixels) {
        const bool drawn = copy < m.draw->instance_count;
        for (u32 k = 0; k < 12; ++k) m.after[copy * 12 + k] = drawn ? m.models[copy * 16 + k] : 0.0F;
    }
    if (m.vertices.block == nullptr) return;
    const motion_counts& counts = m.vertices.layout.counts;
    for (u64 i = pixel; i < u64{counts.matrices} * 12; i += pixels)
        m.vertices.after.matrices[i] = m.vertices.now.matrices[i];
    const u64 weights = max_(counts.weights, 1U);  // the plane has one even without morph targets
    for (u64 i = pixel; i < weights; i += pixels)
        m.vertices.after.weights[i] = i < counts.weights ? m.vertices.now.weights[i] : 0.0F;
}

}  // namespace carousel::kernels::body
