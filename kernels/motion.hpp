#pragma once
// The host API of the kernels that move a mesh: the pose of a frame, and the vertices in this pose. The rules
// of kernels.hpp apply.

#include "device/backend.hpp"
#include "kernels/motion_layout.hpp"

namespace carousel::kernels {

/// Bytes of private device memory that compute_pose needs. One block serves all frames of one queue.
[[nodiscard]] inline constexpr u64 pose_scratch_bytes(const motion_counts& counts) {
    return u64{counts.nodes} * 12 * sizeof(f64);
}

/// Computes the pose at a time of the animation, as a function of the block and of the time alone.
struct pose_args {
    motion_layout motion;
    const std::byte* block = nullptr;
    f64 time = 0;  ///< seconds
    pose_planes out;
    std::byte* scratch = nullptr;
};
void compute_pose(device::queue& q, const pose_args& args);

/// Moves all vertices of a mesh by a pose: morph targets first, then the weighted matrices.
struct move_args {
    motion_layout motion;
    const std::byte* block = nullptr;
    pose_planes pose;  ///< is only read
    moved_vertices out;
};
void move_vertices(device::queue& q, const move_args& args);

}  // namespace carousel::kernels
