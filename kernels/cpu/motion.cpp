// Poses and moved vertices on the CPU. A pose is small, so one thread computes it.
#include "device/cpu/pool.hpp"
#include "kernels/body/pose.hpp"
#include "kernels/cpu/shade_entries.hpp"

namespace carousel::kernels::cpu {

void run_pose(const pose_args& args) {
    const motion_view m = view_motion(args.motion, args.block);
    auto* const locals = reinterpret_cast<f64*>(args.scratch);
    for (u32 i = 0; i < m.counts.nodes; ++i) body::local_matrix(m, i, args.time, locals + u64{i} * 12);
    for (u32 i = 0; i < m.counts.matrices; ++i)
        body::pose_matrix(m, locals, i, args.out.matrices + u64{i} * 12);
    for (u32 i = 0; i < m.counts.weights; ++i) args.out.weights[i] = body::pose_weight(m, i, args.time);
}

void run_move(device::cpu::pool& pool, const move_args& args, const entries& use) {
    const shade_entries& loops = shade_entries_of(use);
    const motion_view m = view_motion(args.motion, args.block);
    pool.parallel_for(m.vertex_count, 1024, [&](u64 begin, u64 end, unsigned) {
        loops.move_range(m, args, static_cast<u32>(begin), static_cast<u32>(end));
    });
}

void compute_pose(device::queue& q, const pose_args& args) {
    q.submit([args](device::cpu::pool&) { run_pose(args); });
}
void move_vertices(device::queue& q, const move_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_move(pool, args, best_entries()); });
}

}  // namespace carousel::kernels::cpu
