#pragma once
// One vertex of a moving mesh in a pose: morph targets, then linear blend skinning. A vertex of a rigid mesh
// has one influence, the matrix of its node.

#include "kernels/body/surface.hpp"
#include "kernels/motion.hpp"

namespace carousel::kernels::body {

/// The weighted sum of the matrices that influence a vertex.
CAROUSEL_HD_INLINE void blended_matrix(const motion_view& m, const f32* matrices, const moving_vertex& v,
                                       f32* out) {
    for (u32 k = 0; k < 12; ++k) out[k] = 0.0F;
    for (u32 i = 0; i < v.influence_count; ++i) {
        const influence by = m.influences[min_(v.first_influence + i, m.counts.influences - 1U)];
        const f32* const matrix = matrices + u64{min_(by.matrix, m.counts.matrices - 1U)} * 12;
        for (u32 k = 0; k < 12; ++k) out[k] = fma_(by.weight, matrix[k], out[k]);
    }
}

/// Transforms a direction by the cofactors of the linear part, which is the inverse transpose multiplied by
/// the determinant. If the matrix mirrors, the result is reversed, so that normals stay outside. The matrix
/// and the result are scaled, because products of their elements could underflow. The result has unit length;
/// it is the y axis if there is no direction.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 transform_normal(const f32* m, vec3 n) {
    f32 largest = 0.0F;
    for (u32 r = 0; r < 3; ++r)
        for (u32 c = 0; c < 3; ++c) largest = max_(largest, abs_(m[4 * r + c]));
    const f32 scale = 1.0F / (largest > 1e-37F ? largest : 1.0F);
    const vec3 a = vec3{m[0], m[1], m[2]} * scale, b = vec3{m[4], m[5], m[6]} * scale,
               c = vec3{m[8], m[9], m[10]} * scale;
    const auto cross_of = [](vec3 p, vec3 q) {
        return vec3{p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z, p.x * q.y - p.y * q.x};
    };
    const vec3 bc = cross_of(b, c), ca = cross_of(c, a), ab = cross_of(a, b);
    const f32 side = dot(a, bc) < 0.0F ? -1.0F : 1.0F;
    const vec3 turned{dot(bc, n), dot(ca, n), dot(ab, n)};
    const f32 size = max_(abs_(turned.x), max_(abs_(turned.y), abs_(turned.z)));
    if (!(size > 1e-37F) || !is_finite(size)) return {0.0F, 1.0F, 0.0F};
    return unit(turned * (side / size));
}

/// Vertex `i` in a pose.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex moved_vertex(const motion_view& m, const f32* matrices,
                                                            const f32* weights, u32 i) {
    const moving_vertex& v = m.vertices[i];
    vec3 p{v.at.position[0], v.at.position[1], v.at.position[2]};
    vec3 n{v.at.normal[0], v.at.normal[1], v.at.normal[2]};
    for (u32 k = 0; k < v.delta_count; ++k) {
        const morph_delta& d = m.deltas[min_(v.first_delta + k, m.counts.deltas - 1U)];
        const f32 weight = weights[min_(v.first_weight + d.weight, m.counts.weights - 1U)];
        p = along(p, {d.position[0], d.position[1], d.position[2]}, weight);
        n = along(n, {d.normal[0], d.normal[1], d.normal[2]}, weight);
    }
    f32 matrix[12];
    blended_matrix(m, matrices, v, matrix);
    const vec3 normal = transform_normal(matrix, n);
    shaded_vertex out{};
    for (u32 r = 0; r < 3; ++r) {
        const f32* const row = matrix + 4 * r;
        out.position[r] = fma_(row[0], p.x, fma_(row[1], p.y, fma_(row[2], p.z, row[3])));
    }
    out.normal[0] = normal.x, out.normal[1] = normal.y, out.normal[2] = normal.z;
    out.texture[0] = v.at.texture[0], out.texture[1] = v.at.texture[1];
    return out;
}

CAROUSEL_HD_INLINE void move_vertex(const motion_view& m, const pose_planes& pose, const moved_vertices& out,
                                    u32 i) {
    const shaded_vertex moved = moved_vertex(m, pose.matrices, pose.weights, i);
    for (u32 k = 0; k < 3; ++k) out.positions[u64{i} * 3 + k] = moved.position[k];
    out.vertices[i] = moved;
}

}  // namespace carousel::kernels::body
