#pragma once
// Meshes as the geometry stage stores them in its asset block.

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "kernels/material_record.hpp"
#include "kernels/punctual_light.hpp"
#include "kernels/scene.hpp"
#include "stages/assets/scene_asset.hpp"
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
    bool linear = false;        ///< the numbers of the image are averaged as they are; the factor is not used
    u32 missing = ~0U;          ///< colour (RGBA, red lowest) if there is no image
};

/// The properties of a file's materials in addition to base colours, for G-buffers.
struct mesh_materials {
    std::vector<kernels::material_record> records;  ///< one per surface
    std::vector<kernels::vertex_detail> details;    ///< one per vertex
    std::vector<surface> maps;
    std::vector<kernels::punctual_light> lights;  ///< in the space of the mesh
    std::vector<u32> masked, blended;  ///< triangles, three indices each, which are not in mesh_data::indices
};

/// A perspective camera of a file, in the space of the mesh.
struct file_camera {
    std::string name;
    kernels::camera_state state;
};

struct mesh_data {
    std::vector<mesh_vertex> vertices;
    std::vector<u32> indices;       ///< three per triangle, counter-clockwise seen from outside
    std::vector<surface> surfaces;  ///< empty: the file specifies no colours
    mesh_materials materials;       ///< empty unless they were requested
    std::vector<file_camera> cameras;
};

/// Where a vertex of a mesh comes from.
struct vertex_origin {
    u32 node = no_index, primitive = 0, instance = 0;  ///< primitive of the node's mesh; instance of the node
    u32 vertex = 0;                                    ///< of the primitive
    u32 flat = no_index;  ///< the triangle of the primitive that determines the normal; no_index: the vertex
                          ///< has its own one
    bool back = false;    ///< of a double-sided material: the normal is reversed
};

/// The sphere in which a mesh fits, from its points: first all by include(), then all again by reach().
class sphere_of_points {
public:
    void include(const f32 (&p)[3]);
    void reach(const f32 (&p)[3]);
    /// The centre of the bounding box of the points.
    [[nodiscard]] f64 centre(std::size_t axis) const { return (low_[axis] + high_[axis]) / 2; }
    /// The distance of the farthest point. Throws settings_error for the key "mesh" if all points coincide.
    [[nodiscard]] f64 radius(const std::string& name) const;

private:
    static constexpr f64 infinity = std::numeric_limits<f64>::infinity();
    f64 low_[3] = {infinity, infinity, infinity}, high_[3] = {-infinity, -infinity, -infinity};
    f64 radius_ = 0;
};

/// What fit_unit_sphere() has done: it subtracted `centre`, then divided by `radius`.
struct unit_fit {
    f64 centre[3] = {0, 0, 0}, radius = 1;
};
/// Moves the centre of the bounding box to the origin and the farthest point to distance 1. Throws
/// settings_error for the key "mesh" if all points coincide.
unit_fit fit_unit_sphere(std::vector<mesh_vertex>& vertices, const std::string& name);

/// Returns the reason why a picture would not show the mesh, given that back faces are not drawn; "" if the
/// picture would show the mesh. The possible reasons: the orientation of every triangle contradicts its
/// corners' normals, a closed mesh is inside out, or a camera at `eye` sees only backs and edges.
[[nodiscard]] std::string facing_away(const mesh_data& mesh, const f32 (&eye)[3]);

/// The mesh that pictures show: the nodes of the scene with their transforms; a mesh that several nodes or
/// instances show is included once per node and instance. Triangles without normals in the file are flat and
/// have separate vertices. A double-sided material has the back of each triangle as well, because kernels
/// draw fronts only. Each material in use is a surface. The mesh is not scaled (fit_unit_sphere). Throws
/// settings_error for the key "mesh" if a point exceeds the range of a float or the mesh becomes too large.
/// `all_properties`: also fills mesh_data::materials; triangles that are not opaque are there. A file without
/// any material is matt and white.
/// `origins`: receives the origin of each vertex, unless it is null.
[[nodiscard]] mesh_data mesh_of_asset(const scene_asset& asset, bool all_properties = false,
                                      std::vector<vertex_origin>* origins = nullptr);

}  // namespace carousel::stages
