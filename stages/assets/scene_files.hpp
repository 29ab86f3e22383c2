#pragma once
// The readers of scene files. Each returns a scene_asset that fulfils the guarantees of scene_asset.hpp, or
// throws settings_error for the key "mesh" with the file, the place and the reason.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stages/assets/scene_asset.hpp"

namespace carousel::stages {

/// glTF 2.0 (.gltf with its buffers next to it or embedded, .glb): the nodes of the scene that the file
/// names, with everything that scene_asset can hold. Sparse accessors, KHR_mesh_quantization and, if the
/// programs were built with the libraries, EXT_meshopt_compression and KHR_draco_mesh_compression are
/// decoded. Refused: files whose shown triangles or base colours are invalid, required extensions that the
/// reader does not know, files outside the folder of the glTF file. Other invalid parts are left out and
/// counted (asset_omissions). Source of the rules: the glTF 2.0 specification, sections 3.6.2 (accessors),
/// 3.7.2.1 (meshes), 3.7.4 (transformations).
/// Refused too: a file that expands to more than `most_bytes`, because a few bytes may name any size, and any
/// number of parts may name one accessor. Without a value: half of the memory that is available.
/// `base_colors_only`: of the images, only those of base colours are read.
[[nodiscard]] scene_asset read_gltf(const std::filesystem::path& path,
                                    std::optional<u64> most_bytes = std::nullopt,
                                    bool base_colors_only = false);

/// Wavefront OBJ with its material libraries: one mesh, one primitive per material that a face uses.
/// Polygons are converted to triangles that cover exactly the polygon, also if it is concave; missing normals
/// are computed (obj_parts.hpp).
[[nodiscard]] scene_asset read_obj(const std::filesystem::path& path);

/// Checks the text of an OBJ file line by line. Refuses malformed or non-finite numbers, faces with fewer
/// than three corners, indices that are 0 or beyond the file's data, and a file without faces. Throws
/// settings_error for the key "mesh". Returns the number of corners of each face.
std::vector<u32> check_obj(const std::string& text, const std::string& name);

/// PLY (ascii, binary little and big endian): vertices with colours, normals and texture coordinates, and
/// polygons. Missing normals are computed. Elements and properties of other names are skipped.
[[nodiscard]] scene_asset read_ply(const std::filesystem::path& path);

/// The extensions of the names of scene files, with the dot: ".obj", ".gltf", ".glb", ".ply".
[[nodiscard]] const std::vector<std::string>& scene_file_extensions();

/// Reads a file by the reader that its name selects. Throws settings_error also for a file of another name.
/// `base_colors_only`: as for read_gltf(); pictures of other formats are separate files, which a reader only
/// names.
[[nodiscard]] scene_asset read_scene_file(const std::filesystem::path& path, bool base_colors_only = false);

}  // namespace carousel::stages
