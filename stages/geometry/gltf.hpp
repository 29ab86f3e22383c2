#pragma once
// glTF 2.0 files (.gltf with its buffers next to it or embedded, .glb) as one mesh: all nodes of the scene
// with their transforms; a mesh that several nodes show is included once per node. Triangles, strips and
// fans, with or without indices; base colour textures and factors. Not read: cameras, lights, animations,
// skins, morph targets, vertex colours, alpha (a warning is logged if the difference is visible). Files that
// cannot be read are refused with an error that names the place: sparse accessors, required extensions other
// than KHR_mesh_quantization and KHR_texture_transform, files outside the mesh's own folder, references
// beyond a buffer's end. Formulas: the glTF 2.0 specification, sections 3.6.2 (accessors), 3.7.2.1 (meshes),
// 3.7.4 (transformations).

#include <filesystem>

#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// Reads a file. Missing normals are replaced by those of the triangles (flat, as the specification
/// requires); the mesh is centred and scaled into the unit sphere. Throws settings_error for the key "mesh".
[[nodiscard]] mesh_data load_gltf(const std::filesystem::path& path);

}  // namespace carousel::stages
