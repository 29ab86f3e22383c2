// Vertex stage on CUDA: all vertices, then all clusters of triangles.
#include "kernels/body/cluster.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

constexpr u32 vertex_threads = 256;

/// One thread a vertex, and a cluster; block row = instance. The block's first threads multiply the instance's matrices; the first block also
/// writes them down for the fragment stage and clears the counters, which the next kernel adds to.
__global__ void __launch_bounds__(vertex_threads, resident_blocks(8)) transform(mesh_view mesh, body::matrix34 projection, body::viewport view,
                                                            const draw_record* draw, const f32* models, triangle_buffers out) {
    __shared__ f32 clip[12];
    __shared__ u32 instances;
    if (threadIdx.x == 0) instances = body::min_(draw->instance_count, out.max_instances);
    __syncthreads();
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *out.counters = triangle_counters{0, 0, 0, 0, 0, instances, {}};
    for (u32 instance = blockIdx.y; instance < instances; instance += gridDim.y) {
        __syncthreads();
        if (threadIdx.x < 12) {
            const f32* const model = models + u64{instance} * 16;
            clip[threadIdx.x] = body::product_element(projection, model, threadIdx.x);
            if (blockIdx.x == 0) {
                out.instances[instance].clip[threadIdx.x] = clip[threadIdx.x];
                out.instances[instance].model[threadIdx.x] = model[threadIdx.x];
            }
        }
        __syncthreads();
        const u32 i = blockIdx.x * vertex_threads + threadIdx.x, clusters = cluster_count(mesh.counts);
        for (u64 c = i; c < clusters; c += u64{gridDim.x} * vertex_threads) {
            out.hidden[u64{instance} * clusters + c] = body::cluster_hidden(mesh.clusters[c], clip, view) ? 1 : 0;
        }
        if (i < mesh.counts.vertex_count) {
            const f32* const p = mesh.positions + u64{i} * 3;
            out.vertices[u64{instance} * mesh.counts.vertex_count + i] = body::transform_vertex(clip, {p[0], p[1], p[2]}, view);
        }
    }
}

constexpr u32 classify_threads = 256, warps_of_block = classify_threads / 32, classify_each = cluster_triangles / 32;

struct block_totals {
    u32 found[5];  ///< small, large, culled, not finite, bad index: the order of triangle_class, and of triangle_counters
    u32 base_small, base_large;
};

/// Culls and classifies, a warp a cluster; a block gathers what it keeps and reserves room in the list once. Of a hidden cluster
/// nothing is read but its bounds.
__global__ void __launch_bounds__(classify_threads) classify_triangles(mesh_view mesh, body::viewport view, triangle_buffers out) {
    __shared__ block_totals totals;
    __shared__ u32 instances;  // one read for the whole block, which must leave together
    if (threadIdx.x == 0) {
        totals = block_totals{};
        instances = body::min_(out.counters->instance_count, out.max_instances);
    }
    __syncthreads();
    const u32 count = mesh.counts.triangle_count, vertices = mesh.counts.vertex_count, clusters = cluster_count(mesh.counts);
    const u64 capacity = u64{count} * out.max_instances;
    const u64 flat = u64{blockIdx.x} * warps_of_block + threadIdx.x / 32;
    if (u64{blockIdx.x} * warps_of_block >= u64{clusters} * instances) return;
    const bool exists = flat < u64{clusters} * instances;
    const u32 instance = exists ? static_cast<u32>(flat / clusters) : 0U;
    const u32 cluster = exists ? static_cast<u32>(flat - u64{instance} * clusters) : 0U;
    const u32 begin = cluster * cluster_triangles, end = exists ? body::min_(begin + cluster_triangles, count) : begin;
    const u32 lane = threadIdx.x & 31U;
    const bool hidden = exists && __shfl_sync(~0U, out.hidden[flat], 0) != 0;  // the warp goes by what its first lane saw
    u32 kind[classify_each], place[classify_each];
    if (hidden && lane == 0) atomicAdd(totals.found + static_cast<u32>(body::triangle_class::culled), end - begin);
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k) {
        const u32 triangle = begin + k * 32 + lane;
        kind[k] = 5;  // none
        if (hidden) continue;
        if (triangle < end) {
            const u32* const index = mesh.indices + u64{triangle} * 3;
            const u32 a = index[0], b = index[1], c = index[2];
            kind[k] = 4;  // an index out of range
            if (a < vertices && b < vertices && c < vertices) {
                const screen_vertex* const v = out.vertices + u64{instance} * vertices;
                kind[k] = static_cast<u32>(body::classify(v[a], v[b], v[c], view.width, view.height));
            }
        }
        const u32 small = __ballot_sync(~0U, kind[k] == 0), large = __ballot_sync(~0U, kind[k] == 1);
        const u32 culled = __ballot_sync(~0U, kind[k] == 2), not_finite = __ballot_sync(~0U, kind[k] == 3);
        const u32 bad = __ballot_sync(~0U, kind[k] == 4);
        // lane m adds what the warp found of class m (the order of block_totals' members) and learns where that begins
        const u32 mine = lane == 0 ? small : (lane == 1 ? large : (lane == 2 ? culled : (lane == 3 ? not_finite : bad)));
        u32 base = 0;
        if (lane < 5 && mine != 0) base = atomicAdd(totals.found + lane, static_cast<u32>(__popc(mine)));
        const u32 before = __shfl_sync(~0U, base, kind[k] == 1 ? 1 : 0);
        place[k] = before + __popc((kind[k] == 1 ? large : small) & ((1U << lane) - 1U));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u32* const counters = &out.counters->small;
        for (u32 i = 2; i < 5; ++i) {
            if (totals.found[i]) atomicAdd(counters + i, totals.found[i]);
        }
        totals.base_small = totals.found[0] ? atomicAdd(counters, totals.found[0]) : 0U;
        totals.base_large = totals.found[1] ? atomicAdd(counters + 1, totals.found[1]) : 0U;
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k) {
        const u32 id = instance * count + begin + k * 32 + lane;
        const u64 front = u64{totals.base_small} + place[k], back = u64{totals.base_large} + place[k];
        // counters that somebody else resets meanwhile (a revoked stage's slot) must not lead out of the list
        if (kind[k] == 0 && front < capacity) out.list[front] = id;
        if (kind[k] == 1 && back < capacity) out.list[capacity - 1 - back] = id;
    }
}

}  // namespace

void vertex_stage(device::queue& q, const vertex_stage_args& args) {
    const mesh_view mesh = view_mesh(args.mesh, args.mesh_block);
    const body::viewport view = body::make_viewport(args.width, args.height, args.scene.camera.near);
    const u32 rows = args.out.max_instances < 4096 ? args.out.max_instances : 4096;
    const cudaStream_t stream = stream_of(q);
    transform<<<dim3(blocks_for(mesh.counts.vertex_count, vertex_threads), rows), vertex_threads, 0, stream>>>(
        mesh, body::view_projection(args.scene.camera, args.width, args.height), view, args.draw, args.models, args.out);
    const u64 clusters = u64{cluster_count(mesh.counts)} * args.out.max_instances;
    classify_triangles<<<blocks_for(clusters, warps_of_block), classify_threads, 0, stream>>>(mesh, view, args.out);
    check_launch("vertex_stage");
}

}  // namespace carousel::kernels::cuda
