// Bounds and vertex lists of clusters, on the CPU backend.
#include "device/cpu/pool.hpp"
#include "kernels/body/cluster.hpp"
#include "kernels/cpu/entries.hpp"

namespace carousel::kernels::cpu {

void bound_clusters(device::queue& q, const bound_clusters_args& args) {
    q.submit([args](device::cpu::pool& pool) {
        const mesh_view mesh = view_mesh(args.layout, args.block);
        auto* const out = reinterpret_cast<cluster_bounds*>(args.block + args.layout.clusters);
        auto* const numbers = reinterpret_cast<u16*>(args.block + args.layout.local_vertices);
        auto* const corners = reinterpret_cast<u32*>(args.block + args.layout.local_corners);
        pool.parallel_for(cluster_count(mesh.counts), 64, [&](u64 begin, u64 end, unsigned) {
            for (u64 i = begin; i < end; ++i)
                body::describe_cluster(mesh, static_cast<u32>(i), out, numbers, corners);
        });
    });
}

}  // namespace carousel::kernels::cpu
