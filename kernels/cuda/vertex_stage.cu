// Vertex stage on CUDA: all vertices, then all clusters of triangles.
#include "kernels/body/cluster.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

constexpr u32 vertex_threads = 256;

/// One thread a vertex; block row = instance. The block's first threads multiply the instance's matrices; the first block also
/// writes them down for the fragment stage and clears the counters, which the next kernel adds to.
__global__ void __launch_bounds__(vertex_threads) transform(mesh_view mesh, body::matrix34 projection, body::viewport view,
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
        const u32 i = blockIdx.x * vertex_threads + threadIdx.x;
        if (i < mesh.counts.vertex_count) {
            const f32* const p = mesh.positions + u64{i} * 3;
            out.vertices[u64{instance} * mesh.counts.vertex_count + i] = body::transform_vertex(clip, {p[0], p[1], p[2]}, view);
        }
    }
}

constexpr u32 classify_threads = 256, warps_of_block = classify_threads / 32, clusters_of_block = 32;

struct block_totals {
    u32 found[5];  ///< small, large, culled, not finite, bad index: the order of triangle_class, and of triangle_counters
    u32 base_small, base_large;
};

/// triangle_class of one triangle, or 4 for an index out of range.
__device__ __forceinline__ u32 class_of(const mesh_view& mesh, const screen_vertex* vertices, u32 triangle, const body::viewport& view) {
    const u32* const index = mesh.indices + u64{triangle} * 3;
    const u32 a = index[0], b = index[1], c = index[2], limit = mesh.counts.vertex_count;
    if (a >= limit || b >= limit || c >= limit) return 4;
    return static_cast<u32>(body::classify(vertices[a], vertices[b], vertices[c], view.width, view.height));
}

/// Culls and classifies 32 clusters a block: the lanes of the first warp test one each, then a warp takes a cluster that isn't
/// hidden at a time. Of a hidden one nothing is read but its bounds. What is kept is gathered in shared memory, as the list is:
/// small ones from the front, large ones from the back; room in the list is reserved once.
__global__ void __launch_bounds__(classify_threads) classify_triangles(mesh_view mesh, body::viewport view, triangle_buffers out) {
    constexpr u32 most = clusters_of_block * cluster_triangles;
    __shared__ block_totals totals;
    __shared__ u32 kept[most];
    __shared__ u32 visible;
    const u32 count = mesh.counts.triangle_count, clusters = cluster_count(mesh.counts);
    const u64 capacity = u64{count} * out.max_instances, first = u64{blockIdx.x} * clusters_of_block;
    const u32 lane = threadIdx.x & 31U;
    if (threadIdx.x < 32) {
        if (lane == 0) totals = block_totals{};
        __syncwarp();
        const u64 flat = first + lane;
        const u32 instance = static_cast<u32>(flat / clusters), cluster = static_cast<u32>(flat - u64{instance} * clusters);
        const bool exists = instance < body::min_(out.counters->instance_count, out.max_instances);
        const bool hidden = exists && body::cluster_hidden(mesh.clusters[cluster], out.instances[instance].clip, view);
        if (hidden) {
            atomicAdd(totals.found + static_cast<u32>(body::triangle_class::culled), body::min_(cluster_triangles, count - cluster * cluster_triangles));
        }
        const u32 mask = __ballot_sync(~0U, exists && !hidden);
        if (lane == 0) visible = mask;
    }
    __syncthreads();
    u32 mine = 0, rest = visible;  // every eighth bit of `visible`
    for (u32 n = 0; rest != 0; ++n, rest &= rest - 1) mine |= n % warps_of_block == threadIdx.x / 32 ? rest & (0U - rest) : 0U;
    for (; mine != 0; mine &= mine - 1) {
        const u64 flat = first + static_cast<u32>(__ffs(static_cast<int>(mine))) - 1U;
        const u32 instance = static_cast<u32>(flat / clusters);
        const u32 begin = static_cast<u32>(flat - u64{instance} * clusters) * cluster_triangles, end = body::min_(begin + cluster_triangles, count);
        const screen_vertex* const vertices = out.vertices + u64{instance} * mesh.counts.vertex_count;
        u32 kind[cluster_triangles / 32];
#pragma unroll
        for (u32 k = 0; k < cluster_triangles / 32; ++k) {
            const u32 triangle = begin + k * 32 + lane;
            kind[k] = triangle < end ? class_of(mesh, vertices, triangle, view) : 5U;  // 5: none
        }
#pragma unroll
        for (u32 k = 0; k < cluster_triangles / 32; ++k) {
            const u32 small = __ballot_sync(~0U, kind[k] == 0), large = __ballot_sync(~0U, kind[k] == 1);
            const u32 culled = __ballot_sync(~0U, kind[k] == 2), not_finite = __ballot_sync(~0U, kind[k] == 3);
            const u32 bad = __ballot_sync(~0U, kind[k] == 4);
            // lane m adds what the warp found of class m (the order of block_totals' members) and learns where that begins
            const u32 found = lane == 0 ? small : (lane == 1 ? large : (lane == 2 ? culled : (lane == 3 ? not_finite : bad)));
            u32 base = 0;
            if (lane < 5 && found != 0) base = atomicAdd(totals.found + lane, static_cast<u32>(__popc(found)));
            const u32 before = __shfl_sync(~0U, base, kind[k] == 1 ? 1 : 0);
            const u32 place = before + __popc((kind[k] == 1 ? large : small) & ((1U << lane) - 1U));
            const u32 id = instance * count + begin + k * 32 + lane;
            if (kind[k] == 0) kept[place] = id;
            if (kind[k] == 1) kept[most - 1 - place] = id;
        }
    }
    __syncthreads();
    if (threadIdx.x < 5 && totals.found[threadIdx.x] != 0) {
        const u32 base = atomicAdd(&out.counters->small + threadIdx.x, totals.found[threadIdx.x]);
        if (threadIdx.x == 0) totals.base_small = base;
        if (threadIdx.x == 1) totals.base_large = base;
    }
    __syncthreads();
    // counters that somebody else resets meanwhile (a revoked stage's slot) must not lead out of the list
    for (u32 i = threadIdx.x; i < totals.found[0]; i += classify_threads) {
        const u64 front = u64{totals.base_small} + i;
        if (front < capacity) out.list[front] = kept[i];
    }
    for (u32 i = threadIdx.x; i < totals.found[1]; i += classify_threads) {
        const u64 back = u64{totals.base_large} + i;
        if (back < capacity) out.list[capacity - 1 - back] = kept[most - 1 - i];
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
    classify_triangles<<<blocks_for(clusters, clusters_of_block), classify_threads, 0, stream>>>(mesh, view, args.out);
    check_launch("vertex_stage");
}

}  // namespace carousel::kernels::cuda
