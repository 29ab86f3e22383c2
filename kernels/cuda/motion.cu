// Poses and moved vertices on CUDA. One block computes a pose, because its matrices need the local matrices
// of all nodes.
#include "kernels/body/move.hpp"
#include "kernels/body/pose.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

constexpr u32 pose_threads = 256;

__global__ void __launch_bounds__(pose_threads)
    fill_pose(const __grid_constant__ motion_view m, f64 time, pose_planes out, f64* locals) {
    for (u32 i = threadIdx.x; i < m.counts.nodes; i += pose_threads)
        body::local_matrix(m, i, time, locals + u64{i} * 12);
    for (u32 i = threadIdx.x; i < m.counts.weights; i += pose_threads)
        out.weights[i] = body::pose_weight(m, i, time);
    __syncthreads();
    for (u32 i = threadIdx.x; i < m.counts.matrices; i += pose_threads)
        body::pose_matrix(m, locals, i, out.matrices + u64{i} * 12);
}

__global__ void __launch_bounds__(128)
    move_all(const __grid_constant__ motion_view m, pose_planes pose, moved_vertices out) {
    const u32 i = blockIdx.x * 128 + threadIdx.x;
    if (i < m.vertex_count) body::move_vertex(m, pose, out, i);
}

}  // namespace

void compute_pose(device::queue& q, const pose_args& args) {
    launch("fill_pose", fill_pose, 1, pose_threads, q, view_motion(args.motion, args.block), args.time,
           args.out, reinterpret_cast<f64*>(args.scratch));
}

void move_vertices(device::queue& q, const move_args& args) {
    launch("move_all", move_all, blocks_for(args.motion.vertex_count, 128), 128, q,
           view_motion(args.motion, args.block), args.pose, args.out);
}

}  // namespace carousel::kernels::cuda
