#pragma once
// Affine transforms of glTF nodes and textures, in double precision. Internal to the glTF reader.

#include "stages/geometry/gltf_document.hpp"

namespace carousel::stages {

/// Row-major 3 x 4: [L | t].
struct affine {
    f64 m[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};

    /// Applies `inner` first, then this transform.
    [[nodiscard]] affine times(const affine& inner) const;
    void point(const f64 (&p)[3], f64 (&out)[3]) const;
    /// Transforms a normal by the cofactors of L, which equal its inverse transpose times its determinant and
    /// also exist for a singular L; flips the normal if L mirrors.
    void normal(const f64 (&n)[3], f64 (&out)[3]) const;
    /// True if the transform turns counter-clockwise triangles into clockwise ones.
    [[nodiscard]] bool mirrors() const;
};

/// A node's own transform: its matrix, or translation * rotation * scale. Refuses matrices that are not
/// affine and rotations of length 0.
[[nodiscard]] affine transform_of(const gltf_value& node);

/// The effect of KHR_texture_transform on texture coordinates. Row-major 2 x 3: [L | t].
struct texture_transform {
    f64 m[6] = {1, 0, 0, 0, 1, 0};

    void apply(f32 (&uv)[2]) const;
};

/// The transform of a texture's use in a material. Sets `texture_set` to the set that the extension names, if
/// any.
[[nodiscard]] texture_transform texture_transform_of(const gltf_value& texture_info, u64& texture_set);

}  // namespace carousel::stages
