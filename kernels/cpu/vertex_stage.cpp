// Vertex stage of the CPU backend: instances, then chunks of vertices, then chunks of triangles, each spread over the pool.
// The order of the triangle list depends on the threads; no picture does.
#include <atomic>
#include <cstring>

#include "device/cpu/pool.hpp"
#include "kernels/body/cluster.hpp"
#include "kernels/cpu/entries.hpp"

namespace carousel::kernels::cpu {
namespace {

constexpr u64 vertex_chunk = 8192;
constexpr u64 triangle_chunk = 4096;

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

/// Calls body(instance, begin, end) for parts of count items of each instance that a flat range covers.
template <typename Body>
void each_instance(u64 begin, u64 end, u64 count, const Body& body) {
    while (begin < end) {
        const u64 instance = begin / count, from = begin % count;
        const u64 n = end - begin < count - from ? end - begin : count - from;
        body(static_cast<u32>(instance), static_cast<u32>(from), static_cast<u32>(from + n));
        begin += n;
    }
}

/// Classifies the triangles of [from, to) cluster by cluster; neighbours that may show something go together.
void visible_triangles(const vertex_job& job, const entries& use, u32 instance, u32 from, u32 to, classified& found) {
    const f32* const clip = job.out.instances[instance].clip;
    u32 pending = from;
    while (from < to) {
        const u32 cluster = from / cluster_triangles;
        const u32 end = body::min_((cluster + 1) * cluster_triangles, to);
        const bool hidden = body::cluster_hidden(job.mesh.clusters[cluster], clip, job.view);
        // written by the range that holds its first triangle: ranges of later instances may begin within a cluster
        if (from == cluster * cluster_triangles) job.out.hidden[u64{instance} * cluster_count(job.mesh.counts) + cluster] = hidden ? 1 : 0;
        if (hidden) {
            if (pending < from) use.triangles(job, instance, pending, from, found);
            found.culled += end - from;
            pending = end;
        }
        from = end;
    }
    if (pending < to) use.triangles(job, instance, pending, to, found);
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

void run_vertex_stage(device::cpu::pool& pool, const vertex_stage_args& args, const entries& use) {
    vertex_job job{view_mesh(args.mesh, args.mesh_block), body::make_viewport(args.width, args.height, args.scene.camera.near),
                   args.out, 0};
    job.instance_count = body::min_(args.draw->instance_count, args.out.max_instances);
    fill_instances(args, job.instance_count);
    const u64 vertex_count = job.mesh.counts.vertex_count, triangle_count = job.mesh.counts.triangle_count;
    pool.parallel_for(vertex_count * job.instance_count, vertex_chunk, [&](u64 begin, u64 end, unsigned) {
        each_instance(begin, end, vertex_count, [&](u32 i, u32 from, u32 to) { use.vertices(job, i, from, to); });
    });
    list_totals totals;
    pool.parallel_for(triangle_count * job.instance_count, triangle_chunk, [&](u64 begin, u64 end, unsigned) {
        u32 small[triangle_chunk + 1];
        u32 large[triangle_chunk + 1];  // one more: the inner loop writes before it counts
        classified found{small, large};
        each_instance(begin, end, triangle_count, [&](u32 i, u32 from, u32 to) { visible_triangles(job, use, i, from, to, found); });
        append(job, found, totals);
    });
    *args.out.counters = {totals.small, totals.large, totals.culled, totals.not_finite, totals.bad_index, job.instance_count, {}};
}

void vertex_stage(device::queue& q, const vertex_stage_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_vertex_stage(pool, args, best_entries()); });
}

}  // namespace carousel::kernels::cpu
