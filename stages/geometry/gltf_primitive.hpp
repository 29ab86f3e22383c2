#pragma once
// One primitive of a glTF mesh as triangles. Internal to the reading of glTF files.

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
    std::vector<u32> indices;  ///< three a triangle, each below vertices.size()
};

/// Reads a primitive; `texture_set` is the number of the texture coordinates that its material reads. None
/// where it holds points or lines. Refuses indices beyond the positions and numbers that are not finite.
/// Without normals every triangle has vertices of its own.
[[nodiscard]] std::optional<gltf_primitive> read_primitive(gltf_document& document,
                                                           const gltf_value& primitive, u64 texture_set);

/// Adds the back of each triangle: its corners in the other order, with the opposite normals. Kernels draw
/// fronts only.
void add_backs(gltf_primitive& p);

/// Adds a primitive as a node shows it. Throws settings_error when a point leaves what a float holds or the
/// mesh grows too large.
void append(mesh_data& mesh, const gltf_primitive& p, const affine& at, u32 surface, const gltf_value& node);

}  // namespace carousel::stages
