#pragma once
// A mesh file with its motion: animations, skins and morph targets.

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/motion_layout.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// The parts of a motion block (kernels/motion_layout.hpp), in host memory.
struct motion_data {
    std::vector<kernels::motion_node> nodes;
    std::vector<kernels::motion_channel> channels;
    std::vector<f32> keys;
    std::vector<kernels::motion_matrix> matrices;
    std::vector<kernels::motion_weight> weights;
    std::vector<kernels::moving_vertex> vertices;
    std::vector<kernels::influence> influences;
    std::vector<kernels::morph_delta> deltas;
    f64 duration = 0;  ///< seconds

    [[nodiscard]] kernels::motion_counts counts() const;
    [[nodiscard]] kernels::motion_layout layout() const;
    /// Fills a block of layout().bytes bytes.
    void fill(std::byte* block) const;
};

struct moving_mesh {
    mesh_data mesh;      ///< in the pose at time 0, in the unit sphere
    motion_data motion;  ///< without matrices: the mesh does not move
};

/// Reads a scene file of any format (stages/assets/scene_files.hpp) as one mesh. The animation `clip` moves
/// it: a name, or a number from 0; "" means the first animation, "none" that the mesh keeps its pose. Skins
/// and the weights of morph targets apply with and without an animation. The unit sphere contains the mesh
/// at nine times of the animation. Logs one warning for each kind of feature that pictures do not show.
/// Throws settings_error for the keys "mesh" and "clip".
/// `all_properties`: as for mesh_of_asset().
[[nodiscard]] moving_mesh load_moving_mesh(const std::filesystem::path& path, const std::string& clip,
                                           bool all_properties = false);

/// The mesh alone, in its pose without an animation.
[[nodiscard]] mesh_data load_mesh(const std::filesystem::path& path, bool all_properties = false);

}  // namespace carousel::stages
