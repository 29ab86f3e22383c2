#pragma once
// Reads Wavefront OBJ files as indexed triangles. The result is a mesh that can be drawn, or an error that
// names the file, the line and the problem: nothing is guessed.

#include <filesystem>
#include <string>
#include <vector>

#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// Checks the text of an OBJ file line by line: malformed and non-finite numbers, faces with fewer than three
/// corners, indices that are 0 or beyond the file's data, or no faces at all. Throws settings_error for the
/// key "mesh". Returns the number of corners of each face.
std::vector<u32> check_obj(const std::string& text, const std::string& name);

/// Reads a file. Polygons are converted to triangles that cover exactly the polygon, also if it is concave;
/// missing normals are computed (obj_normals.hpp); the mesh is centred and scaled into the unit sphere. Each
/// material that a face uses is a surface: its picture (map_Kd) and its colour (Kd). Logs one warning for
/// each kind of property that is not shown. Throws settings_error for the key "mesh".
[[nodiscard]] mesh_data load_obj(const std::filesystem::path& path);

}  // namespace carousel::stages
