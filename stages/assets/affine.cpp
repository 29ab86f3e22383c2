#include "stages/assets/affine.hpp"

#include <cmath>

namespace carousel::stages {
namespace {

/// Cofactor of element (row, column) of L.
f64 cofactor(const f64 (&m)[12], u32 row, u32 column) {
    const u32 r1 = (row + 1) % 3, r2 = (row + 2) % 3, c1 = (column + 1) % 3, c2 = (column + 2) % 3;
    return m[4 * r1 + c1] * m[4 * r2 + c2] - m[4 * r1 + c2] * m[4 * r2 + c1];
}

}  // namespace

affine affine::from_parts(const f64 (&t)[3], const f64 (&q)[4], const f64 (&s)[3]) {
    affine out;
    const f64 length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
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

void texture_transform::apply(f32 (&uv)[2]) const {
    const f64 u = uv[0], v = uv[1];
    uv[0] = static_cast<f32>(m[0] * u + m[1] * v + m[2]);
    uv[1] = static_cast<f32>(m[3] * u + m[4] * v + m[5]);
}

}  // namespace carousel::stages
