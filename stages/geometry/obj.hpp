#pragma once
// Wavefront OBJ files as indexed triangles. Whoever asks gets a mesh that can be drawn or one sentence that says which file,
// which line and what is wrong with it: nothing is guessed.

#include <filesystem>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

struct mesh_vertex {
    f32 position[3];
    f32 normal[3];   ///< unit length
    f32 texture[2];  ///< u to the right, v down (row 0 of the picture is v = 0); 0 where the file has none
};

struct mesh_data {
    std::vector<mesh_vertex> vertices;
    std::vector<u32> indices;  ///< three a triangle, counter-clockwise seen from outside
    std::filesystem::path texture;  ///< base colour picture of the first material that names one, or ""
};

/// Checks the text of an OBJ file line by line: numbers that are none or not finite, faces with fewer than three corners,
/// indices of 0 or beyond what the file defines, no faces at all. Throws settings_error for the key "mesh".
void check_obj(const std::string& text, const std::string& name);

/// Reads a file; polygons become triangles; missing normals are the area-weighted mean of the triangles around the point; centred
/// and scaled into the unit sphere. Throws settings_error for the key "mesh".
[[nodiscard]] mesh_data load_obj(const std::filesystem::path& path);

}  // namespace carousel::stages
