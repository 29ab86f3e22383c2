// The host API of motion.hpp: checks arguments and forwards them to the queue's backend.
#include "kernels/motion.hpp"

#include "core/errors.hpp"
#include "kernels/cpu/shade_entries.hpp"
#include "kernels/cuda/entries.hpp"

namespace carousel::kernels {
namespace {

void check_motion(const motion_layout& motion) {
    if (!motion.moves() || motion.counts.nodes == 0 || motion.counts.influences == 0 ||
        motion.vertex_count == 0)
        throw config_error(
            "only a mesh with nodes, matrices and influences can be moved, but one of these counts is 0");
}

}  // namespace

void compute_pose(device::queue& q, const pose_args& args) {
    check_motion(args.motion);
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::compute_pose(q, args);
#endif
    cpu::compute_pose(q, args);
}

void move_vertices(device::queue& q, const move_args& args) {
    check_motion(args.motion);
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::move_vertices(q, args);
#endif
    cpu::move_vertices(q, args);
}

}  // namespace carousel::kernels
