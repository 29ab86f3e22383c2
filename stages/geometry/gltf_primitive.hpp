#pragma once
// One primitive of a glTF mesh as triangles. Internal to the glTF reader.

#include <optional>

#include "stages/geometry/gltf_document.hpp"
#include "stages/geometry/gltf_transform.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

struct gltf_primitive {
    struct vertex {
        f64 position[3], normal[3];
        f32 texture[2];
    };
    std::vector<vertex> vertices;
    std::vector<u32> indices;  ///< three per triangle, each below vertices.size()
};

/// Reads a primitive. `texture_set`: the set of texture coordinates that its material uses. Returns nothing
/// for points and lines. Refuses indices beyond the positions and numbers that are not finite. Without
/// normals every triangle gets separate vertices.
[[nodiscard]] std::optional<gltf_primitive> read_primitive(gltf_document& document,
                                                           const gltf_value& primitive, u64 texture_set);

/// Adds the back of each triangle: its corners in reverse order, with opposite normals. Kernels draw fronts
/// only.
void add_backs(gltf_primitive& p);

/// Adds a primitive, transformed by `at`, in the form in which `node` uses it. Throws settings_error if a
/// point exceeds the range of a float or the mesh becomes too large.
void append(mesh_data& mesh, const gltf_primitive& p, const affine& at, u32 surface, const gltf_value& node);

}  // namespace carousel::stages
