#pragma once
// Affine transforms of glTF nodes, in double. Internal to the reading of glTF files.

#include "stages/geometry/gltf_document.hpp"

namespace carousel::stages {

/// Row-major 3 x 4: [L | t].
struct affine {
    f64 m[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};

    /// First `inner`, then this.
    [[nodiscard]] affine times(const affine& inner) const;
    void point(const f64 (&p)[3], f64 (&out)[3]) const;
    /// Turns a normal: by the cofactors of L, which are its inverse transposed times its determinant and exist for a flattened L, too; and
    /// to the other side where L mirrors.
    void normal(const f64 (&n)[3], f64 (&out)[3]) const;
    /// Does it turn counter-clockwise triangles into clockwise ones?
    [[nodiscard]] bool mirrors() const;
};

/// A node's own transform: its matrix, or translation * rotation * scale. Refuses matrices that are not affine and rotations of length 0.
[[nodiscard]] affine transform_of(const gltf_value& node);

}  // namespace carousel::stages
