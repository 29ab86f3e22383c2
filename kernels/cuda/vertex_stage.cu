// Vertex stage on CUDA: the instances' matrices, then all clusters of triangles.
#include "kernels/body/cluster.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

constexpr u32 select_threads = 256, warps = select_threads / 32, classify_each = cluster_triangles / 32;
constexpr int select_resident = 5;  ///< number of blocks that fit on a multiprocessor; the registers and the
                                    ///< shared memory limit this number

struct select_args {
    mesh_view mesh;
    body::matrix34 projection;
    body::viewport view;
    const draw_record* draw;
    const f32* models;
    triangle_buffers out;
    u32 each;  ///< number of clusters per block, 1 to most_clusters
};

__device__ __forceinline__ u32 drawn_instances(const select_args& a) {
    return body::min_(a.draw->instance_count, a.out.max_instances);
}

/// Stores the instances' matrices for the fragment stage and clears the counters, to which the next kernel
/// adds.
__global__ void __launch_bounds__(256) prepare(const __grid_constant__ select_args a) {
    let_next_begin();
    const u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x;
    const u32 instances = drawn_instances(a);
    if (i == 0) *a.out.counters = triangle_counters{0, 0, 0, 0, 0, instances, {}};
    const u64 instance = i / 12;
    const u32 k = static_cast<u32>(i % 12);
    if (instance >= instances) return;
    const f32* const model = a.models + instance * 16;
    a.out.instances[instance].clip[k] = body::product_element(a.projection, model, k);
    a.out.instances[instance].model[k] = model[k];
}

/// Bounds of all clusters in the pose of this frame, one warp per cluster.
__global__ void __launch_bounds__(256)
    bound_moved(const __grid_constant__ mesh_view mesh, cluster_bounds* out) {
    const u32 number = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x & 31U;
    if (number >= cluster_count(mesh.counts)) return;
    const cluster_bounds listed = mesh.clusters[number];
    const u32 count = body::min_(listed.vertex_count, cluster_vertices);
    body::moved_box box = body::empty_box();
    for (u32 v = lane; v < count; v += 32)
        box = body::with_vertex(box, mesh.positions + u64{body::listed_vertex(mesh, number, listed, v)} * 3);
    // Minima and maxima do not depend on the order, so that the CPU computes the same.
    for (int step = 16; step > 0; step /= 2) {
        const auto other = [&](f32 x) { return __shfl_xor_sync(~0U, x, step); };
        const f32 low[3] = {other(box.low.x), other(box.low.y), other(box.low.z)},
                  high[3] = {other(box.high.x), other(box.high.y), other(box.high.z)};
        const bool finite = box.finite;
        box = body::with_vertex(body::with_vertex(box, low), high);
        box.finite = finite;
    }
    box.finite = __all_sync(~0U, box.finite) != 0;
    if (lane == 0) out[number] = body::moved_bounds(listed, box);
}

/// The fields of a screen vertex that classify() reads, packed into 8 bytes: one word with x (24 bits) and
/// the outcode (8 bits), and one word with y.
using packed_vertex = uint2;
__device__ __forceinline__ packed_vertex pack(const screen_vertex& v) {
    return {static_cast<u32>(v.x) << 8 | v.outcode, static_cast<u32>(v.y)};
}
__device__ __forceinline__ screen_vertex unpack(const packed_vertex& v) {
    return {static_cast<i32>(v.x) >> 8, static_cast<i32>(v.y), 0.0F, v.x & 255U};
}
static_assert(body::screen_limit < 1 << 23 && body::out_not_finite < 256);

constexpr u32 most_clusters = 256;  ///< per block

struct visible_cluster {
    u32 in_block;
    u32 first_vertex, vertex_count;
    u32 inside;  ///< all outcodes are 0
};

struct block_store {
    packed_vertex corners[warps][cluster_vertices];  ///< for each warp, the transformed vertices of the
                                                     ///< cluster that it processes
    f32 clip[warps][12];                             ///< if there is only one instance, all warps use the
                                                     ///< first element
    visible_cluster visible[most_clusters];
    uint4 small[most_clusters], large[most_clusters];      ///< for each visible cluster, one bit per triangle
    u32 small_at[most_clusters], large_at[most_clusters];  ///< the position at which the cluster's triangles
                                                           ///< begin in the block's part of the list
    u32 visible_count;
    u32 found[5];  ///< counts of small, large, culled, not finite, bad index, in the order of triangle_class
                   ///< and of triangle_counters
    u32 base_small, base_large;
};

struct place {
    u32 instance, cluster;
};
/// A block's clusters are spread over the whole mesh, so that all blocks find a similar number of visible
/// ones.
__device__ __forceinline__ place place_of(const select_args& a, u32 in_block, u32 clusters) {
    const u64 flat = u64{in_block} * gridDim.x + blockIdx.x;
    if (a.out.max_instances == 1) return {0, static_cast<u32>(flat)};
    const u32 instance = static_cast<u32>(flat / clusters);
    return {instance, static_cast<u32>(flat - u64{instance} * clusters)};
}

/// Tests one cluster per thread; clusters that may be visible are added to the block's list.
__device__ __forceinline__ void find_visible(const select_args& a, block_store& b, u32 clusters,
                                             u32 in_block) {
    const place at = place_of(a, in_block, clusters);
    f32 clip[12];
    if (a.out.max_instances == 1) {
#pragma unroll
        for (u32 k = 0; k < 12; ++k) clip[k] = b.clip[0][k];
    } else {
        const f32* const model = a.models + u64{at.instance} * 16;
#pragma unroll
        for (u32 k = 0; k < 12; ++k) clip[k] = body::product_element(a.projection, model, k);
    }
    const cluster_bounds bounds = a.mesh.clusters[at.cluster];
    if (body::cluster_hidden(bounds, clip, a.view)) {
        const u32 begin = at.cluster * cluster_triangles;
        atomicAdd(b.found + static_cast<u32>(body::triangle_class::culled),
                  body::min_(cluster_triangles, a.mesh.counts.triangle_count - begin));
        return;
    }
    b.visible[atomicAdd(&b.visible_count, 1U)] = {in_block, bounds.first_vertex,
                                                  body::min_(bounds.vertex_count, cluster_vertices),
                                                  body::cluster_inside(bounds, clip, a.view) ? 1U : 0U};
}

/// Transforms each vertex of the cluster once, and stores the results in the warp's store.
template <bool Inside>
__device__ __forceinline__ void transform_listed(const select_args& a, const visible_cluster& what,
                                                 u32 cluster, const f32* clip, packed_vertex* corners,
                                                 u32 lane) {
    const u16* const numbers = a.mesh.local_vertices + u64{cluster} * cluster_vertices;
    for (u32 v = lane; v < what.vertex_count; v += 32) {
        const u32 number = body::min_(what.first_vertex + numbers[v], a.mesh.counts.vertex_count - 1U);
        const f32* const p = a.mesh.positions + u64{number} * 3;
        const body::clip_vertex c = body::to_clip(clip, {p[0], p[1], p[2]});
        corners[v] = pack(body::project(c, a.view, Inside ? 0U : body::outcode_of(c, a.view)));
    }
}

/// Classifies a triangle of a cluster without a vertex list; returns 4 if an index is out of range.
__device__ __noinline__ u32 classify_unlisted(const select_args& a, u32 triangle, const f32* clip) {
    const u32* const index = a.mesh.indices + u64{triangle} * 3;
    screen_vertex v[3];
    for (u32 k = 0; k < 3; ++k) {
        if (index[k] >= a.mesh.counts.vertex_count) return 4;
        const f32* const p = a.mesh.positions + u64{index[k]} * 3;
        v[k] = body::transform_vertex(clip, {p[0], p[1], p[2]}, a.view);
    }
    return static_cast<u32>(body::classify(v[0], v[1], v[2], a.view.width, a.view.height));
}

/// Classifies a triangle of packed corners. If Inside is true, the outcodes are known to be 0 and the
/// compiler removes their tests.
template <bool Inside>
__device__ __forceinline__ u32 classify_listed(const select_args& a, const packed_vertex* v, u32 corners) {
    const auto at = [&](u32 place) {
        screen_vertex s = unpack(v[place & 255U]);
        if (Inside) s.outcode = 0;
        return s;
    };
    return static_cast<u32>(
        body::classify(at(corners), at(corners >> 8), at(corners >> 16), a.view.width, a.view.height));
}

/// Classifies, with one warp, the triangles of the block's visible cluster number `item`. Stores one bit per
/// triangle, and reserves the cluster's part of the block's lists.
__device__ __forceinline__ void classify_cluster(const select_args& a, block_store& b, u32 clusters, u32 item,
                                                 u32 warp, u32 lane) {
    const visible_cluster what = b.visible[item];
    const place at = place_of(a, what.in_block, clusters);
    const u32 count = a.mesh.counts.triangle_count, begin = at.cluster * cluster_triangles,
              end = body::min_(begin + cluster_triangles, count);
    const bool listed = what.vertex_count != 0;
    u32 corners[classify_each];
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k) {  // the loads are issued here, so that they run while the
                                               // vertices are being transformed
        const u32 triangle = begin + k * 32 + lane;
        corners[k] = triangle < end ? a.mesh.local_corners[triangle] : 0U;
    }
    const f32* clip = b.clip[0];
    __syncwarp();
    if (a.out.max_instances > 1) {
        if (lane < 12)
            b.clip[warp][lane] = body::product_element(a.projection, a.models + u64{at.instance} * 16, lane);
        clip = b.clip[warp];
        __syncwarp();
    }
    packed_vertex* const store = b.corners[warp];
    if (what.inside != 0) {
        transform_listed<true>(a, what, at.cluster, clip, store, lane);
    } else {
        transform_listed<false>(a, what, at.cluster, clip, store, lane);
    }
    __syncwarp();
    u32 small[classify_each], large[classify_each], rest = 0;
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k) {
        u32 kind = 5;  // none
        if (begin + k * 32 + lane < end) {
            if (!listed) {
                kind = classify_unlisted(a, begin + k * 32 + lane, clip);
            } else if (what.inside != 0) {
                kind = classify_listed<true>(a, store, corners[k]);
            } else {
                kind = classify_listed<false>(a, store, corners[k]);
            }
        }
        small[k] = __ballot_sync(~0U, kind == 0), large[k] = __ballot_sync(~0U, kind == 1);
        // each count is at most four per lane
        rest += kind == 2 ? 1U : (kind == 3 ? 1U << 8 : (kind == 4 ? 1U << 16 : 0U));
    }
#pragma unroll
    // the word has one byte for each count, because a count is at most 128
    for (u32 step = 16; step > 0; step /= 2) rest += __shfl_xor_sync(~0U, rest, static_cast<int>(step));
    if (lane == 0) {
        b.small[item] = {small[0], small[1], small[2], small[3]};
        b.large[item] = {large[0], large[1], large[2], large[3]};
        b.small_at[item] = atomicAdd(b.found, static_cast<u32>(__popc(small[0]) + __popc(small[1]) +
                                                               __popc(small[2]) + __popc(small[3])));
        const u32 larges =
            static_cast<u32>(__popc(large[0]) + __popc(large[1]) + __popc(large[2]) + __popc(large[3]));
        b.large_at[item] = larges != 0 ? atomicAdd(b.found + 1, larges) : 0U;
        for (u32 i = 2; i < 5; ++i, rest >>= 8) {
            if (rest & 255U) atomicAdd(b.found + i, rest & 255U);
        }
    }
}

/// Writes the triangles of visible cluster number `item` into the list.
__device__ __forceinline__ void list_triangles(const select_args& a, const block_store& b, const place& at,
                                               u32 item, u32 lane) {
    const u64 capacity = u64{a.mesh.counts.triangle_count} * a.out.max_instances;
    const uint4 smalls = b.small[item], larges = b.large[item];
    const u32 small[classify_each] = {smalls.x, smalls.y, smalls.z, smalls.w},
              large[classify_each] = {larges.x, larges.y, larges.z, larges.w};
    u64 front = u64{b.base_small} + b.small_at[item], back = u64{b.base_large} + b.large_at[item];
    const u32 below = (1U << lane) - 1U;
    u32 id = at.instance * a.mesh.counts.triangle_count + at.cluster * cluster_triangles + lane;
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k, id += 32) {
        // Another process may reset the counters meanwhile, if this stage is revoked and its slot is used
        // again. This must not cause writes outside the list.
        const u64 in_front = front + __popc(small[k] & below), in_back = back + __popc(large[k] & below);
        if ((small[k] >> lane & 1U) != 0 && in_front < capacity) a.out.list[in_front] = id;
        if ((large[k] >> lane & 1U) != 0 && in_back < capacity) a.out.list[capacity - 1 - in_back] = id;
        front += __popc(small[k]), back += __popc(large[k]);
    }
}

/// Culls and classifies. A block tests some clusters, one per thread. Its warps then process the clusters
/// that may be visible, one after another, and record the triangles to keep as bits. At the end the block
/// reserves space in the list, once, and writes the triangles. If a cluster is hidden, only its bounds are
/// read.
__global__ void __launch_bounds__(select_threads, resident_blocks(select_resident))
    select_visible(const __grid_constant__ select_args a) {
    __shared__ block_store b;
    const u32 lane = threadIdx.x & 31U, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) b.visible_count = 0;
    if (threadIdx.x < 5) b.found[threadIdx.x] = 0;
    if (threadIdx.x < 12) b.clip[0][threadIdx.x] = body::product_element(a.projection, a.models, threadIdx.x);
    const u32 clusters = cluster_count(a.mesh.counts);
    const u64 all = u64{clusters} * drawn_instances(a);
    __syncthreads();
    if (threadIdx.x < a.each && u64{threadIdx.x} * gridDim.x + blockIdx.x < all)
        find_visible(a, b, clusters, threadIdx.x);
    __syncthreads();
    const u32 visible = b.visible_count;
    for (u32 item = warp; item < visible; item += warps) classify_cluster(a, b, clusters, item, warp, lane);
    __syncthreads();
    if (threadIdx.x < 5) {
        wait_for_last();  // after this wait the previous kernel has cleared the counters
        const u32 n = b.found[threadIdx.x],
                  base = n != 0 ? atomicAdd(&a.out.counters->small + threadIdx.x, n) : 0U;
        if (threadIdx.x == 0) b.base_small = base;
        if (threadIdx.x == 1) b.base_large = base;
    }
    __syncthreads();
    for (u32 item = warp; item < visible; item += warps)
        list_triangles(a, b, place_of(a, b.visible[item].in_block, clusters), item, lane);
}

}  // namespace

void vertex_stage(device::queue& q, const vertex_stage_args& args) {
    select_args a{view_mesh(args.mesh, args.mesh_block, args.moved),
                  body::view_projection(args.scene.camera, args.width, args.height),
                  body::make_viewport(args.width, args.height, args.scene.camera.near),
                  args.draw,
                  args.models,
                  args.out,
                  1};
    if (args.moved.positions != nullptr && args.moved_bounds != nullptr) {
        launch("bound_moved", bound_moved, blocks_for(u64{cluster_count(args.mesh.counts)} * 32, 256), 256, q,
               a.mesh, args.moved_bounds);
        a.mesh.clusters = args.moved_bounds;
    }
    // If possible, all blocks run at the same time.
    const u64 clusters = u64{cluster_count(args.mesh.counts)} * args.out.max_instances,
              room = u64{multiprocessors()} * select_resident;
    a.each = static_cast<u32>(body::min_<u64>((clusters + room - 1) / room, most_clusters));
    launch("prepare", prepare, blocks_for(u64{args.out.max_instances} * 12, 256), 256, q, a);
    launch_after("select_visible", select_visible, blocks_for(clusters, a.each), select_threads, q, a);
}

}  // namespace carousel::kernels::cuda
