#pragma once
// glTF 2.0 files (.gltf with its buffers beside it or inside, .glb) as one mesh: all nodes of the scene with
// their transforms, a mesh that several nodes show once for each. Triangles, strips and fans, with or without
// indices; base colour textures and factors. Not read: cameras, lights, animations, skins, morph targets,
// vertex colours, alpha (a warning says so where it shows). What can't be read is refused with one sentence
// that names the place: sparse accessors, required extensions other than KHR_mesh_quantization, files outside
// the mesh's own folder, anything that points outside its buffer. Formulas: the glTF 2.0 specification,
// sections 3.6.2 (accessors), 3.7.2.1 (meshes), 3.7.4 (transformations).

#include <filesystem>

#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// Reads a file; missing normals become the triangles' own (flat, as the specification wants them); centred
/// and scaled into the unit sphere. Throws settings_error for the key "mesh".
[[nodiscard]] mesh_data load_gltf(const std::filesystem::path& path);

}  // namespace carousel::stages
