#pragma once
// The payloads that are passed between geometry, vertex and fragment. A stage's input format also contains
// data about the mesh: the mesh itself is in the asset block "mesh", and the format's constants determine the
// layout of this block.

#include <carousel/stage.hpp>

#include "kernels/kernels.hpp"
#include "kernels/motion.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

inline constexpr const char* mesh_asset = "mesh";
inline constexpr const char* motion_asset = "motion";  ///< kernels/motion_layout.hpp; only of a moving mesh

/// geometry -> vertex: plane 0 "draw", 1 "models" (kernels/triangle_layout.hpp). `max_instances` 0: any
/// number (for comparison). `view`: the view with which stages that read the scene begin. `motion`: with
/// matrices, the mesh moves, and the planes 2 "pose" and 3 "weights" have the pose of the frame
/// (kernels::pose_planes).
[[nodiscard]] ring::frame_format scene_format(const kernels::mesh_counts& mesh, u32 max_instances,
                                              const start_view& view = {},
                                              const kernels::motion_counts& motion = {});
/// vertex -> fragment: plane 0 "counters", 1 "instances", 2 "list"; of a mesh that moves also 3 "positions"
/// and 4 "vertices" (kernels::moved_vertices). `samples`: per pixel, 1 or 4.
[[nodiscard]] ring::frame_format triangles_format(const kernels::mesh_counts& mesh, u32 max_instances,
                                                  const start_view& view = {}, bool moves = false,
                                                  u32 samples = 1);

struct mesh_input {
    kernels::mesh_layout layout;
    u32 max_instances = 0;
    start_view view = {};
    kernels::motion_layout motion = {};  ///< of a scene
    bool moves = false;
    u32 samples = 1;  ///< per pixel, of triangles
    /// Assets that a stage with this input uses.
    [[nodiscard]] std::vector<std::string> assets() const;
};
/// Checks that the stage has exactly one input, and that it is a scene (or triangles) of a mesh within the
/// kernels' limits. Throws config_error with both descriptions.
[[nodiscard]] mesh_input require_scene(const configuration& with);
[[nodiscard]] mesh_input require_triangles(const configuration& with);

/// Throws config_error unless the picture's size and the number of triangles are within the kernels' limits.
void require_limits(const configuration& with, const mesh_input& mesh);

/// Returns the mesh's memory for this stage's device; waits until it is filled. Throws shm_error if it is
/// smaller than the layout.
[[nodiscard]] const std::byte* map_mesh(environment& env, const mesh_input& mesh);

/// The same for the motion of a mesh that moves.
[[nodiscard]] const std::byte* map_motion(environment& env, const mesh_input& mesh);

/// Returns memory for the bounds of a moving mesh's clusters in one frame; null if the mesh does not move.
[[nodiscard]] std::unique_ptr<device::mapping> allocate_bounds(environment& env, const mesh_input& mesh);

/// Returns the pose of a scene payload whose mesh moves. Readers must not write to it.
[[nodiscard]] kernels::pose_planes pose_in(const output_payload& payload);
[[nodiscard]] kernels::pose_planes pose_in(const input_payload& payload);

/// Returns the vertices in a triangles payload; null pointers if the mesh does not move. Readers must not
/// write to them.
[[nodiscard]] kernels::moved_vertices moved_in(const output_payload& payload);
[[nodiscard]] kernels::moved_vertices moved_in(const input_payload& payload);

/// Returns the planes of a triangles payload in the form in which the kernels take them. The fragment stage's
/// kernels only read them.
[[nodiscard]] kernels::triangle_buffers triangles_in(const output_payload& payload, u32 max_instances);
[[nodiscard]] kernels::triangle_buffers triangles_in(const input_payload& payload, u32 max_instances);

}  // namespace carousel::stages
