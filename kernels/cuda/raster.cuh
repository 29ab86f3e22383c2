#pragma once
// Building blocks of the three raster tiers: reading a triangle (with every bound checked), clipping it, and drawing a box of it
// by one thread or by a group of threads. Included by fragment_stage.cu alone.

#include "kernels/body/clip.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels::cuda {
namespace {

using namespace body;  // NOLINT: the file is built from these functions

constexpr u32 item_capacity = 1U << 18;
constexpr i32 item_tile = 64;
constexpr i64 medium_area = 4096;

struct scratch_header {
    u32 items;  ///< counter, less one
};

/// A tile of one triangle. place = tile index (16 bits) | part << 16; part 0 is a whole triangle, part k the k-th triangle of a
/// clipped one's fan.
struct item {
    u32 id, place;
};

struct raster_args {
    mesh_view mesh;
    triangle_buffers in;
    viewport view;
    scratch_header* header;
    unsigned long long* keys;
    item* items;
    u32 id_limit;  ///< max_instances * triangles
    i32 tiles_x;
    raster_path path;
};

__device__ __forceinline__ u32 small_count(const raster_args& a) { return min_(a.in.counters->small, a.id_limit); }
__device__ __forceinline__ u32 large_count(const raster_args& a) {
    return min_(a.in.counters->large, a.id_limit - small_count(a));
}

struct fetched {
    screen_vertex v[3];
    bool valid;
};

/// Everything that comes from ring memory is bounded here.
__device__ __forceinline__ fetched fetch(const raster_args& a, u32 id) {
    fetched f{};
    if (id >= a.id_limit) return f;
    u32 instance = 0, triangle = id;
    if (a.in.max_instances > 1) {
        instance = id / a.mesh.counts.triangle_count;
        triangle = id - instance * a.mesh.counts.triangle_count;
    }
    const u32* const index = a.mesh.indices + u64{triangle} * 3;
    const u32 limit = a.mesh.counts.vertex_count;
    const u32 i = index[0], j = index[1], k = index[2];
    if (i >= limit || j >= limit || k >= limit) return f;
    const screen_vertex* const v = a.in.vertices + u64{instance} * limit;
    f.v[0] = v[i], f.v[1] = v[j], f.v[2] = v[k];
    const u32 any = f.v[0].outcode | f.v[1].outcode | f.v[2].outcode;
    f.valid = bounded(f.v[0]) && bounded(f.v[1]) && bounded(f.v[2]) && (any & out_not_finite) == 0;
    return f;
}
/// The same by a warp: all lanes hold what lane 0 read, so that they stay together whatever happens to the memory meanwhile.
__device__ __forceinline__ u32 from_first(u32 x) { return __shfl_sync(~0U, x, 0); }
__device__ __forceinline__ fetched fetch_by_warp(const raster_args& a, u32 id) {
    fetched f = fetch(a, id);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        f.v[k].x = static_cast<i32>(from_first(static_cast<u32>(f.v[k].x)));
        f.v[k].y = static_cast<i32>(from_first(static_cast<u32>(f.v[k].y)));
        f.v[k].inverse_w = float_of(from_first(bits_of(f.v[k].inverse_w)));
        f.v[k].outcode = from_first(f.v[k].outcode);
    }
    f.valid = from_first(f.valid ? 1U : 0U) != 0;
    return f;
}
__device__ __forceinline__ bool needs_clip(const fetched& f) {
    return ((f.v[0].outcode | f.v[1].outcode | f.v[2].outcode) & out_needs_clip) != 0;
}

/// The clipped polygon of a triangle that fetch() has accepted; returns its number of corners.
__device__ __noinline__ u32 clipped_polygon(const raster_args& a, u32 id, clip_vertex (&polygon)[max_clipped_vertices]) {
    const u32 instance = id / a.mesh.counts.triangle_count, triangle = id % a.mesh.counts.triangle_count;
    const f32* const clip = a.in.instances[instance].clip;
    for (u32 k = 0; k < 3; ++k) {
        const f32* const p = a.mesh.positions + u64{a.mesh.indices[u64{triangle} * 3 + k]} * 3;
        polygon[k] = to_clip(clip, {p[0], p[1], p[2]});
    }
    return clip_polygon(polygon, a.view);
}
__device__ __forceinline__ screen_triangle fan_triangle(const raster_args& a, const clip_vertex (&polygon)[max_clipped_vertices],
                                                        u32 k) {
    return make_triangle(project(polygon[0], a.view, 0), project(polygon[k], a.view, 0), project(polygon[k + 1], a.view, 0));
}

template <bool LookFirst>
__device__ __forceinline__ void put(const raster_args& a, i32 x, i32 y, u32 depth, u32 id) {
    unsigned long long* const at = a.keys + i64{y} * a.view.width + x;
    const unsigned long long key = make_key(depth, id);
    // a stale value is never smaller than the true one: looking first can only save the atomic, not lose it
    if (!LookFirst || key < *reinterpret_cast<volatile unsigned long long*>(at)) atomicMin(at, key);
}

/// A box of one triangle by one thread.
template <typename Int>
__device__ __forceinline__ void raster_by_thread(const raster_args& a, const screen_triangle& t, const pixel_box& box, i64 area,
                                                 u32 id) {
    edge_functions<Int> e = edges_at<Int>(t, box.x0, box.y0);
    const depth_plane depth = make_depth(t, area);
    for (i32 y = box.y0; y <= box.y1; ++y) {
        Int e0 = e.e[0], e1 = e.e[1], e2 = e.e[2];
        for (i32 x = box.x0; x <= box.x1; ++x) {
            if (((e0 + e.bias[0]) | (e1 + e.bias[1]) | (e2 + e.bias[2])) >= 0) {
                put<false>(a, x, y, depth_bits(depth, static_cast<f32>(e1), static_cast<f32>(e2)), id);
            }
            e0 += e.step_x[0], e1 += e.step_x[1], e2 += e.step_x[2];
        }
        for (int i = 0; i < 3; ++i) e.e[i] += e.step_y[i];
    }
}

/// A box of one triangle by `columns` x `rows` threads that step over it; (tx, ty) is the thread's place among them.
template <typename Int>
__device__ __forceinline__ void raster_by_group(const raster_args& a, const screen_triangle& t, const pixel_box& box, i64 area,
                                                u32 id, i32 tx, i32 ty, i32 columns, i32 rows) {
    const edge_functions<Int> e = edges_at<Int>(t, box.x0, box.y0);
    const depth_plane depth = make_depth(t, area);
    for (i32 y = ty; y <= box.y1 - box.y0; y += rows) {
        for (i32 x = tx; x <= box.x1 - box.x0; x += columns) {
            Int value[3];
#pragma unroll
            for (int i = 0; i < 3; ++i) value[i] = e.e[i] + static_cast<Int>(x) * e.step_x[i] + static_cast<Int>(y) * e.step_y[i];
            if (((value[0] + e.bias[0]) | (value[1] + e.bias[1]) | (value[2] + e.bias[2])) < 0) continue;
            put<true>(a, box.x0 + x, box.y0 + y, depth_bits(depth, static_cast<f32>(value[1]), static_cast<f32>(value[2])), id);
        }
    }
}
__device__ __forceinline__ void raster_by_warp(const raster_args& a, const screen_triangle& t, const pixel_box& box, i64 area,
                                               u32 id) {
    const i32 lane = static_cast<i32>(threadIdx.x & 31U);
    if (narrow(t)) {
        raster_by_group<i32>(a, t, box, area, id, lane & 7, lane >> 3, 8, 4);
    } else {
        raster_by_group<i64>(a, t, box, area, id, lane & 7, lane >> 3, 8, 4);
    }
}

/// Entry `at` of the list, counted through both ends.
__device__ __forceinline__ u32 entry(const raster_args& a, u32 at, u32 small) {
    return at < small ? a.in.list[at] : a.in.list[a.id_limit - 1 - (at - small)];
}

}  // namespace
}  // namespace carousel::kernels::cuda
