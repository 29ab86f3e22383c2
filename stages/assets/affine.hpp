#pragma once
// Affine transforms of nodes and of texture coordinates, in double precision.

#include <array>

#include "core/types.hpp"

namespace carousel::stages {

/// Row-major 3 x 4: [L | t].
struct affine {
    f64 m[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};

    /// Translation * rotation * scale. The quaternion `q` (x, y, z, w) need not have length 1, but its length
    /// must be greater than 0 and finite.
    [[nodiscard]] static affine from_parts(const f64 (&t)[3], const f64 (&q)[4], const f64 (&s)[3]);
    /// Applies `inner` first, then this transform.
    [[nodiscard]] affine times(const affine& inner) const;
    void point(const f64 (&p)[3], f64 (&out)[3]) const;
    /// Transforms a normal by the cofactors of L. The matrix of the cofactors is the inverse transpose of L
    /// multiplied by the determinant of L, and exists even if L is singular. If L mirrors, the normal is
    /// reversed.
    void normal(const f64 (&n)[3], f64 (&out)[3]) const;
    /// True if the transform turns counter-clockwise triangles into clockwise ones.
    [[nodiscard]] bool mirrors() const;
    bool operator==(const affine&) const = default;
};

/// A transform of texture coordinates (KHR_texture_transform). Row-major 2 x 3: [L | t].
struct texture_transform {
    f64 m[6] = {1, 0, 0, 0, 1, 0};

    void apply(f32 (&uv)[2]) const;
    [[nodiscard]] bool is_identity() const noexcept { return *this == texture_transform{}; }
    bool operator==(const texture_transform&) const = default;
};

}  // namespace carousel::stages
