#pragma once
// A mesh read from a file, before it is stored in the asset block.

#include <filesystem>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "stages/geometry/texture.hpp"

namespace carousel::stages {

struct mesh_vertex {
    f32 position[3];
    f32 normal[3];   ///< unit length
    f32 texture[2];  ///< u to the right, v down (row 0 of the picture is v = 0); 0 if the file has no texture
                     ///< coordinates
    /// index into mesh_data::surfaces, the same at all corners of a triangle; 0 if there are no surfaces
    u32 surface = 0;
};

/// The appearance of a part of a mesh.
struct surface {
    picture image;              ///< base colour; none: white
    f32 factor[3] = {1, 1, 1};  ///< factor by which the image is multiplied, linear light, 0..1
};

struct mesh_data {
    std::vector<mesh_vertex> vertices;
    std::vector<u32> indices;       ///< three per triangle, counter-clockwise seen from outside
    std::vector<surface> surfaces;  ///< empty: the file specifies no colours
};

/// Stores the direction of `n` as a unit vector of floats; +y if `n` has no direction.
void store_unit(const f64 (&n)[3], f32 (&to)[3]);

/// Moves the centre of the bounding box to the origin and the farthest point to distance 1. Throws
/// settings_error for the key "mesh" if all points coincide.
void fit_unit_sphere(std::vector<mesh_vertex>& vertices, const std::string& name);

/// Returns the reason why a picture would not show the mesh, because back faces are not drawn: the
/// orientation of every triangle contradicts its corners' normals, a closed mesh is inside out, or a camera
/// at `eye` sees only backs and edges. "" if none of these holds.
[[nodiscard]] std::string facing_away(const mesh_data& mesh, const f32 (&eye)[3]);

}  // namespace carousel::stages
