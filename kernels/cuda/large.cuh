#pragma once
// The warp tier: clips triangles where necessary, rasters slivers and triangles with boxes of medium size,
// and passes larger triangles to the tiles (tiles.cuh). First each lane reads and sets up a triangle of its
// own, so that many reads are in flight at once. Then all lanes raster these triangles together, one triangle
// after another. Included only by fragment_stage.cu.

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/raster.cuh"

namespace carousel::kernels::cuda {
namespace {

__device__ __forceinline__ i64 box_area(const pixel_box& box) {
    return i64{box.x1 - box.x0 + 1} * (box.y1 - box.y0 + 1);
}

/// True if the triangle covers few pixels of a box that is not small. `twice`: double_area().
__device__ __forceinline__ bool is_sliver(const pixel_box& box, i64 twice) {
    const i64 pixels = twice / (2 * subpixels * subpixels);
    return box_area(box) > least_sliver_box && pixels <= medium_area && pixels * 64 <= box_area(box);
}

/// Broadcasts the triangle of lane `from` to all lanes.
__device__ __forceinline__ screen_triangle broadcast(const screen_triangle& t, int from) {
    const auto i = [&](i32 x) { return __shfl_sync(~0U, x, from); };
    const auto f = [&](f32 x) { return float_of(__shfl_sync(~0U, bits_of(x), from)); };
    return {i(t.ax), i(t.ay), i(t.bx), i(t.by), i(t.cx), i(t.cy), f(t.wa), f(t.wb), f(t.wc)};
}

/// Rasters the triangles of the lanes in `lanes`.
__device__ __forceinline__ void raster_lanes(const raster_args& a, u32 lanes, const screen_triangle& mine,
                                             u32 id) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const int from = __ffs(static_cast<int>(lanes)) - 1;
        const screen_triangle t = broadcast(mine, from);
        const u32 source_id = __shfl_sync(~0U, id, from);
        const pixel_box box = box_of(t, a.view.width, a.view.height);
        if (narrow(t)) {
            raster_by_warp<i32>(a, t, box, double_area<i32>(t), source_id);
        } else {
            raster_by_warp<i64>(a, t, box, double_area(t), source_id);
        }
    }
}

/// Like raster_lanes, for slivers. This is a separate function so that it does not increase the number of
/// registers in the more frequent cases.
__device__ __noinline__ void raster_slivers(const raster_args& a, u32 lanes, const screen_triangle& mine,
                                            u32 id) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const int from = __ffs(static_cast<int>(lanes)) - 1;
        const screen_triangle t = broadcast(mine, from);
        raster_by_spans(a, t, box_of(t, a.view.width, a.view.height), __shfl_sync(~0U, id, from));
    }
}

/// For each lane in `lanes`, stores the lane's triangle in the tiles' store. Returns the lanes whose triangle
/// did not fit.
__device__ __forceinline__ u32 hand_to_tiles(const raster_args& a, u32 lanes, const screen_triangle& t,
                                             const pixel_box& box, u32 id) {
    if (lanes == 0) return 0;
    const u32 lane = threadIdx.x & 31U;
    u32 base = 0;
    if (lane == 0) base = atomicAdd(&a.header->large, static_cast<u32>(__popc(lanes))) + 1;
    base = from_first(base);
    const u64 at = u64{base} + __popc(lanes & ((1U << lane) - 1U));
    const bool mine = (lanes >> lane & 1U) != 0, room = mine && at < large_capacity;
    if (room) {
        a.boxes[at] = {static_cast<u16>(box.x0), static_cast<u16>(box.y0), static_cast<u16>(box.x1),
                       static_cast<u16>(box.y1)};
        a.large[at] = {t, id};
    }
    return __ballot_sync(~0U, mine && !room);
}

/// Draws all triangles that are not small. On the raster paths `medium` and `large`, this kernel draws every
/// triangle of the list.
__global__ void __launch_bounds__(256, 3) raster_large(const __grid_constant__ raster_args a) {
    let_next_begin();
    // This kernel need not wait at its start. If it follows raster_small, it starts only after all blocks of
    // raster_small have waited until the keys are cleared (fragment_stage.cu), and both kernels access shared
    // data only by atomics. On the other paths this kernel is launched in stream order.
    const u32 small = from_first(small_count(a));
    const u64 begin = a.path == raster_path::automatic ? small : 0U;
    const u64 end = u64{small} + from_first(large_count(a));
    const u32 warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x & 31U;
    // With few triangles, each warp takes fewer of them, so that every warp has work.
    const u64 fair = (end - begin + warps - 1) / warps;
    const u32 each = fair < 32 ? static_cast<u32>(fair) : 32U;
    for (u64 first = begin + u64{blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32} * each; first < end;
         first += u64{warps} * each) {
        const bool some = lane < each && first + lane < end;
        const u32 id = some ? entry(a, static_cast<u32>(first) + lane, small) : ~0U;
        const fetched f = fetch(a, corners_of(a, id));
        const bool clipped = f.valid && needs_clip(f);
        clip_vertex polygon[max_clipped_vertices];
        const u32 corners = clipped ? clipped_polygon(a, id, polygon) : (f.valid ? 3U : 0U);
        for (u32 k = 1; __any_sync(~0U, k + 1 < corners); ++k) {
            screen_triangle t{};
            pixel_box box{0, 0, -1, -1};
            if (k + 1 < corners) {
                t = clipped ? fan_triangle(a, polygon, k) : make_triangle(f.v[0], f.v[1], f.v[2]);
                box = box_of(t, a.view.width, a.view.height);
            }
            const i64 twice = double_area(t);
            const bool visible = !box.empty() && twice > 0;
            const bool medium = a.path != raster_path::large &&
                                (a.path == raster_path::medium || box_area(box) <= medium_area);
            const bool sliver = a.path != raster_path::large && is_sliver(box, twice);
            const u32 late = hand_to_tiles(a, __ballot_sync(~0U, visible && !medium && !sliver), t, box, id);
            raster_lanes(a, __ballot_sync(~0U, visible && medium && !sliver) | late, t, id);
            const u32 slivers = __ballot_sync(~0U, visible && sliver);
            if (slivers != 0) raster_slivers(a, slivers, t, id);
        }
    }
    wait_for_last();  // this kernel waits at its end and not at its start, because it may run while small
                      // triangles are drawn
}

}  // namespace
}  // namespace carousel::kernels::cuda
