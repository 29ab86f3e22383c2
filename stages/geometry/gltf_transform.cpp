#include "stages/geometry/gltf_transform.hpp"

#include <algorithm>
#include <cmath>

namespace carousel::stages {
namespace {

/// Cofactor of element (row, column) of L.
f64 cofactor(const f64 (&m)[12], u32 row, u32 column) {
    const u32 r1 = (row + 1) % 3, r2 = (row + 2) % 3, c1 = (column + 1) % 3, c2 = (column + 2) % 3;
    return m[4 * r1 + c1] * m[4 * r2 + c2] - m[4 * r1 + c2] * m[4 * r2 + c1];
}

}  // namespace

affine affine::times(const affine& inner) const {
    affine out;
    for (u32 r = 0; r < 3; ++r) {
        for (u32 c = 0; c < 4; ++c) {
            f64 sum = c == 3 ? m[4 * r + 3] : 0.0;
            for (u32 k = 0; k < 3; ++k) {
                sum += m[4 * r + k] * inner.m[4 * k + c];
            }
            out.m[4 * r + c] = sum;
        }
    }
    return out;
}

void affine::point(const f64 (&p)[3], f64 (&out)[3]) const {
    for (u32 r = 0; r < 3; ++r) {
        out[r] = m[4 * r] * p[0] + m[4 * r + 1] * p[1] + m[4 * r + 2] * p[2] + m[4 * r + 3];
    }
}

void affine::normal(const f64 (&n)[3], f64 (&out)[3]) const {
    const f64 side = mirrors() ? -1.0 : 1.0;
    for (u32 r = 0; r < 3; ++r) {
        out[r] = side * (cofactor(m, r, 0) * n[0] + cofactor(m, r, 1) * n[1] + cofactor(m, r, 2) * n[2]);
    }
}

bool affine::mirrors() const {
    return m[0] * cofactor(m, 0, 0) + m[1] * cofactor(m, 0, 1) + m[2] * cofactor(m, 0, 2) < 0;
}

affine transform_of(const gltf_value& node) {
    affine out;
    f64 columns[16];
    if (node.numbers("matrix", columns)) {
        if (columns[3] != 0 || columns[7] != 0 || columns[11] != 0 || columns[15] != 1) {
            node.refuse("its matrix is not affine: the last row must be 0 0 0 1");
        }
        for (u32 r = 0; r < 3; ++r) {
            for (u32 c = 0; c < 4; ++c) {
                out.m[4 * r + c] = columns[4 * c + r];
            }
        }
        return out;
    }
    f64 t[3] = {0, 0, 0}, q[4] = {0, 0, 0, 1}, s[3] = {1, 1, 1};
    node.numbers("translation", t);
    node.numbers("rotation", q);
    node.numbers("scale", s);
    const f64 length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(length > 0) || !std::isfinite(length)) {
        node.refuse("its rotation is not a quaternion of length 1");
    }
    const f64 x = q[0] / length, y = q[1] / length, z = q[2] / length, w = q[3] / length;
    const f64 turn[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),  //
                         2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),  //
                         2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};
    for (u32 r = 0; r < 3; ++r) {
        for (u32 c = 0; c < 3; ++c) {
            out.m[4 * r + c] = turn[3 * r + c] * s[c];
        }
        out.m[4 * r + 3] = t[r];
    }
    return out;
}

void texture_transform::apply(f32 (&uv)[2]) const {
    const f64 u = uv[0], v = uv[1];
    uv[0] = static_cast<f32>(m[0] * u + m[1] * v + m[2]);
    uv[1] = static_cast<f32>(m[3] * u + m[4] * v + m[5]);
}

texture_transform texture_transform_of(const gltf_value& texture_info, u64& texture_set) {
    texture_transform out;
    const auto extensions = texture_info.find("extensions");
    const auto given = extensions ? extensions->find("KHR_texture_transform") : std::nullopt;
    if (!given) {
        return out;
    }
    f64 offset[2] = {0, 0}, scale[2] = {1, 1};
    given->numbers("offset", offset);
    given->numbers("scale", scale);
    texture_set = given->integer_or("texCoord", texture_set, 0, 31);
    // The orientation is counter-clockwise as displayed, with v pointing down; Blender and three.js use the
    // same interpretation.
    const f64 angle = given->number_or("rotation", 0), c = std::cos(angle), s = std::sin(angle);
    const f64 m[6] = {c * scale[0], s * scale[1], offset[0], -s * scale[0], c * scale[1], offset[1]};
    std::copy_n(m, 6, out.m);
    return out;
}

}  // namespace carousel::stages
