#pragma once
// Meshes read from files: the data, and the readers of each format.

#include <filesystem>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "stages/assets/texture.hpp"

namespace carousel::stages {

// A mesh read from a file, before it is stored in the asset block.

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

/// Returns the reason why a picture would not show the mesh, given that back faces are not drawn; "" if the
/// picture would show the mesh. The possible reasons: the orientation of every triangle contradicts its
/// corners' normals, a closed mesh is inside out, or a camera at `eye` sees only backs and edges.
[[nodiscard]] std::string facing_away(const mesh_data& mesh, const f32 (&eye)[3]);

// glTF 2.0 files (.gltf with its buffers next to it or embedded, .glb) as one mesh: all nodes of the scene
// with their transforms; a mesh that several nodes show is included once per node. Triangles, strips and
// fans, with or without indices; base colour textures and factors. Not read: cameras, lights, animations,
// skins, morph targets, vertex colours, alpha (a warning is logged if the difference is visible). Files that
// cannot be read are refused with an error that names the place: sparse accessors, required extensions other
// than KHR_mesh_quantization and KHR_texture_transform, files outside the mesh's own folder, references
// beyond a buffer's end. Formulas: the glTF 2.0 specification, sections 3.6.2 (accessors), 3.7.2.1 (meshes),
// 3.7.4 (transformations).

/// Reads a file. Missing normals are replaced by those of the triangles (flat, as the specification
/// requires); the mesh is centred and scaled into the unit sphere. Throws settings_error for the key "mesh".
[[nodiscard]] mesh_data load_gltf(const std::filesystem::path& path);

// Reads Wavefront OBJ files as indexed triangles. The result is a mesh that can be drawn, or an error that
// names the file, the line and the problem: nothing is guessed.

/// Checks the text of an OBJ file line by line. Refuses malformed or non-finite numbers, faces with fewer
/// than three corners, indices that are 0 or beyond the file's data, and a file without faces. Throws
/// settings_error for the key "mesh". Returns the number of corners of each face.
std::vector<u32> check_obj(const std::string& text, const std::string& name);

/// Reads a file. Polygons are converted to triangles that cover exactly the polygon, also if it is concave;
/// missing normals are computed (obj_parts.hpp); the mesh is centred and scaled into the unit sphere. Each
/// material that a face uses is a surface: its picture (map_Kd) and its colour (Kd). Logs one warning for
/// each kind of property that is not shown. Throws settings_error for the key "mesh".
[[nodiscard]] mesh_data load_obj(const std::filesystem::path& path);

}  // namespace carousel::stages
