#pragma once
// The warp tier: rasters boxes of medium size, and hands larger ones and what it clips to the tiles (tiles.cuh). Each lane
// reads and sets up a triangle of its own, so that the reads of many are under way at once; then all lanes raster what they have
// found, one after another. Included by fragment_stage.cu alone.

#include "kernels/cuda/raster.cuh"

namespace carousel::kernels::cuda {
namespace {

/// The triangle that lane `from` holds, in all lanes.
__device__ __forceinline__ screen_triangle broadcast(const screen_triangle& t, int from) {
    const auto i = [&](i32 x) { return __shfl_sync(~0U, x, from); };
    const auto f = [&](f32 x) { return float_of(__shfl_sync(~0U, bits_of(x), from)); };
    return {i(t.ax), i(t.ay), i(t.bx), i(t.by), i(t.cx), i(t.cy), f(t.wa), f(t.wb), f(t.wc)};
}

/// Rasters the triangles of the lanes in `lanes`.
__device__ __forceinline__ void raster_lanes(const raster_args& a, u32 lanes, const screen_triangle& mine, u32 id) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const int from = __ffs(static_cast<int>(lanes)) - 1;
        const screen_triangle t = broadcast(mine, from);
        const u32 whose = __shfl_sync(~0U, id, from);
        const pixel_box box = box_of(t, a.view.width, a.view.height);
        if (narrow(t)) {
            raster_by_warp<i32>(a, t, box, double_area<i32>(t), whose);
        } else {
            raster_by_warp<i64>(a, t, box, double_area(t), whose);
        }
    }
}

/// Puts one triangle into the tiles' store, where there is room for it.
__device__ __forceinline__ bool hand_to_tiles(const raster_args& a, const screen_triangle& t, const pixel_box& box, u32 id) {
    const u32 at = atomicAdd(&a.header->large, 1U) + 1U;
    if (at >= large_capacity) return false;
    a.boxes[at] = {static_cast<u16>(box.x0), static_cast<u16>(box.y0), static_cast<u16>(box.x1), static_cast<u16>(box.y1)};
    a.large[at] = {t, id};
    return true;
}

/// Clips a triangle that fetch() has accepted and hands what is left to the tiles. Rare, so it has its registers to itself.
__device__ __noinline__ void clip_to_tiles(const raster_args& a, u32 id) {
    clip_vertex polygon[max_clipped_vertices];
    const u32 corners = clipped_polygon(a, id, polygon);
    for (u32 k = 1; k + 1 < corners; ++k) {
        const screen_triangle t = fan_triangle(a, polygon, k);
        const pixel_box box = box_of(t, a.view.width, a.view.height);
        const i64 area = double_area(t);
        if (box.empty() || area <= 0) continue;
        if (!hand_to_tiles(a, t, box, id)) raster_by_thread<i64>(a, t, box, area, id);
    }
}

/// The list from entry `begin` to `end`, by all warps of the grid.
__device__ __forceinline__ void raster_large(const raster_args& a, u64 begin, u64 end, u32 small) {
    const u32 warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x & 31U;
    // few triangles: few a warp, so that all warps have some. From the last warp on: the first ones have more of the small.
    const u64 fair = (end - begin + warps - 1) / warps;
    const u32 each = fair < 32 ? static_cast<u32>(fair) : 32U;
    const u32 warp = warps - 1 - (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
    for (u64 first = begin + u64{warp} * each; first < end; first += u64{warps} * each) {
        const u32 id = lane < each && first + lane < end ? entry(a, static_cast<u32>(first) + lane, small) : ~0U;
        const fetched f = fetch(a, corners_of(a, id));
        const screen_triangle t = make_triangle(f.v[0], f.v[1], f.v[2]);
        const pixel_box box = box_of(t, a.view.width, a.view.height);
        bool by_warp = false;
        if (f.valid && needs_clip(f)) {
            clip_to_tiles(a, id);
        } else if (f.valid && !box.empty() && double_area(t) > 0) {
            by_warp = a.path != raster_path::large &&
                      (a.path == raster_path::medium || i64{box.x1 - box.x0 + 1} * (box.y1 - box.y0 + 1) <= medium_area);
            by_warp = by_warp || !hand_to_tiles(a, t, box, id);
        }
        raster_lanes(a, __ballot_sync(~0U, by_warp), t, id);
    }
}

}  // namespace
}  // namespace carousel::kernels::cuda
