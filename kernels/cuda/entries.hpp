#pragma once
// The functions of kernels.hpp on a CUDA queue: each of them launches kernels on the queue's stream, and
// throws cuda_error if a launch is refused.

#include "kernels/kernels.hpp"
#include "kernels/looks.hpp"
#include "kernels/motion.hpp"

namespace carousel::kernels::cuda {

void generate_mesh(device::queue& q, const generate_mesh_args& args);
void generate_texture(device::queue& q, const generate_texture_args& args);
void bound_clusters(device::queue& q, const bound_clusters_args& args);
void animate_instances(device::queue& q, const animate_args& args);
void vertex_stage(device::queue& q, const vertex_stage_args& args);
void fragment_stage(device::queue& q, const fragment_stage_args& args);
void sharpen(device::queue& q, const sharpen_args& args);
void light(device::queue& q, const light_args& args);
void post(device::queue& q, const post_args& args);
void taa(device::queue& q, const taa_args& args);
void compare(device::queue& q, const compare_args& args);
void compute_pose(device::queue& q, const pose_args& args);
void move_vertices(device::queue& q, const move_args& args);
void hash_plane(device::queue& q, const hash_args& args);
[[nodiscard]] u64 hash_scratch_bytes() noexcept;
[[nodiscard]] u64 fragment_scratch_bytes(u32 width, u32 height, u32 layers, u32 samples);

}  // namespace carousel::kernels::cuda
