// Bounds and vertex lists of clusters, on the CPU backend.

#include <atomic>
#include <cstring>

#include "device/cpu/pool.hpp"
#include "kernels/body/cluster.hpp"
#include "kernels/cpu/entries.hpp"

namespace carousel::kernels::cpu {
namespace {

// Vertex stage of the CPU backend. First the instances and then chunks of clusters are distributed over the
// pool. The order of the triangle list depends on the timing of the threads, but the picture does not.

constexpr u64 cluster_chunk = 32;

void fill_instances(const vertex_stage_args& args, u32 count) {
    const body::matrix34 projection = body::view_projection(args.scene.camera, args.width, args.height);
    for (u32 i = 0; i < count; ++i) {
        const f32* const model = args.models + static_cast<u64>(i) * 16;
        instance_record& record = args.out.instances[i];
        for (u32 k = 0; k < 12; ++k) {
            record.clip[k] = body::product_element(projection, model, k);
            record.model[k] = model[k];
        }
    }
}

/// Bounds of all clusters in the pose of this frame.
void bound_moved(device::cpu::pool& pool, const mesh_view& mesh, cluster_bounds* out) {
    pool.parallel_for(cluster_count(mesh.counts), 64, [&](u64 begin, u64 end, unsigned) {
        for (u64 i = begin; i < end; ++i) {
            const u32 number = static_cast<u32>(i);
            const cluster_bounds listed = mesh.clusters[i];
            const u32 count = body::min_(listed.vertex_count, cluster_vertices);
            body::moved_box box = body::empty_box();
            for (u32 v = 0; v < count; ++v)
                box = body::with_vertex(
                    box, mesh.positions + u64{body::listed_vertex(mesh, number, listed, v)} * 3);
            out[i] = body::moved_bounds(listed, box);
        }
    });
}

struct list_totals {
    std::atomic<u32> small{0}, large{0}, culled{0}, not_finite{0}, bad_index{0};
};

void append(const vertex_job& job, const classified& found, list_totals& totals) {
    constexpr auto relaxed = std::memory_order_relaxed;
    const u64 capacity = static_cast<u64>(job.out.max_instances) * job.mesh.counts.triangle_count;
    const u32 at_small = totals.small.fetch_add(found.small_count, relaxed);
    std::memcpy(job.out.list + at_small, found.small, found.small_count * sizeof(u32));
    const u32 at_large = totals.large.fetch_add(found.large_count, relaxed);
    for (u32 i = 0; i < found.large_count; ++i) job.out.list[capacity - 1 - at_large - i] = found.large[i];
    totals.culled.fetch_add(found.culled, relaxed);
    totals.not_finite.fetch_add(found.not_finite, relaxed);
    totals.bad_index.fetch_add(found.bad_index, relaxed);
}

}  // namespace

void bound_clusters(device::queue& q, const bound_clusters_args& args) {
    q.submit([args](device::cpu::pool& pool) {
        const mesh_view mesh = view_mesh(args.layout, args.block);
        auto* const out = reinterpret_cast<cluster_bounds*>(args.block + args.layout.clusters);
        auto* const numbers = reinterpret_cast<u16*>(args.block + args.layout.local_vertices);
        auto* const corners = reinterpret_cast<u32*>(args.block + args.layout.local_corners);
        pool.parallel_for(cluster_count(mesh.counts), 64, [&](u64 begin, u64 end, unsigned) {
            for (u64 i = begin; i < end; ++i)
                body::describe_cluster(mesh, args.moves, static_cast<u32>(i), out, numbers, corners);
        });
    });
}

void run_vertex_stage(device::cpu::pool& pool, const vertex_stage_args& args, const entries& use) {
    vertex_job job{view_mesh(args.mesh, args.mesh_block, args.moved),
                   body::make_viewport(args.width, args.height, args.scene.camera.near), args.out, 0};
    job.instance_count = body::min_(args.draw->instance_count, args.out.max_instances);
    fill_instances(args, job.instance_count);
    const u32 clusters = cluster_count(job.mesh.counts);
    if (args.moved.positions != nullptr && args.moved_bounds != nullptr) {
        bound_moved(pool, job.mesh, args.moved_bounds);
        job.mesh.clusters = args.moved_bounds;
    }
    list_totals totals;
    pool.parallel_for(u64{clusters} * job.instance_count, cluster_chunk, [&](u64 begin, u64 end, unsigned) {
        u32 small[cluster_chunk * cluster_triangles + 1];  // one extra element, because the inner loop stores
                                                           // a triangle before it increments the count
        u32 large[cluster_chunk * cluster_triangles + 1];
        classified found{small, large};
        for (u64 flat = begin; flat < end; ++flat) {
            const u32 instance = static_cast<u32>(flat / clusters),
                      number = static_cast<u32>(flat % clusters);
            if (body::cluster_hidden(job.mesh.clusters[number], job.out.instances[instance].clip, job.view)) {
                found.culled += body::min_(cluster_triangles,
                                           job.mesh.counts.triangle_count - number * cluster_triangles);
            } else {
                use.cluster(job, instance, number, found);
            }
        }
        append(job, found, totals);
    });
    *args.out.counters = {totals.small,
                          totals.large,
                          totals.culled,
                          totals.not_finite,
                          totals.bad_index,
                          job.instance_count,
                          {}};
}

void vertex_stage(device::queue& q, const vertex_stage_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_vertex_stage(pool, args, best_entries()); });
}

}  // namespace carousel::kernels::cpu
