#pragma once
// The tile tier: a block owns 64x64 pixels, and each of its warps owns 32x16 of them. The keys of these
// pixels are in registers, and their initial values are the results of the other tiers. The block scans the
// boxes of all large triangles, a batch at a time, and sets up the triangles that touch the tile. The warps
// of the block draw these triangles without atomics. If a triangle is farther than everything visible in
// the tile, it is not set up. If a triangle does not touch the pixels of a warp, or is farther than
// everything visible in these pixels, this warp does not draw it. The memory use does not depend on how
// many triangles overlap, and no two warps contend for a word. Included only by fragment_stage.cu.

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/raster.cuh"

namespace carousel::kernels::cuda {
namespace {

constexpr u32 tile_threads = 256;
constexpr i32 warp_columns = 32, warp_rows = 16;  // pixels of a warp, which has one lane per column
static_assert(tile_side == 2 * warp_columns &&
              tile_side * tile_side == static_cast<i32>(tile_threads) * warp_rows);

/// A triangle in a tile's coordinates; the edge values are those at the tile's first pixel and include the
/// bias.
struct tile_triangle {
    i64 e[3], step_x[3], step_y[3];
    depth_plane depth;
    depth_bound nearest;
    u32 id;
    u16 bias_b, bias_c;  ///< subtracted from the edge values before the depth is computed from them
};

/// Returns false if no pixel of the tile can be inside.
__device__ __forceinline__ bool set_up(const screen_triangle& t, const pixel_box& tile, u32 id,
                                       tile_triangle& out) {
    const edge_functions<i64> e = edges_at<i64>(t, tile.x0, tile.y0);
    bool outside = false;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const i64 at = e.e[i] + e.bias[i], x = (tile.x1 - tile.x0) * e.step_x[i],
                  y = (tile.y1 - tile.y0) * e.step_y[i];
        outside |= at + max_(x, i64{0}) + max_(y, i64{0}) < 0;  // the value at the corner of the tile at
                                                                // which the edge function is largest
        out.e[i] = at, out.step_x[i] = e.step_x[i], out.step_y[i] = e.step_y[i];
    }
    out.depth = make_depth(t, double_area(t));
    out.nearest = make_depth_bound(t, out.depth, e);
    out.id = id;
    out.bias_b = static_cast<u16>(-e.bias[1]), out.bias_c = static_cast<u16>(-e.bias[2]);
    return !outside;
}

template <bool Covers>
__device__ __forceinline__ void draw_column(const tile_triangle& t, i64 e0, i64 e1, i64 e2,
                                            unsigned long long (&keys)[warp_rows]) {
    const i64 s0 = t.step_y[0], s1 = t.step_y[1], s2 = t.step_y[2];
    const u32 id = t.id;
    const depth_plane depth = t.depth;
    const i64 bias_b = t.bias_b, bias_c = t.bias_c;
#pragma unroll
    for (i32 row = 0; row < warp_rows; ++row) {
        if (Covers || (e0 | e1 | e2) >= 0) {
            const unsigned long long key =
                make_key(depth_bits(depth, static_cast<f32>(e1 + bias_b), static_cast<f32>(e2 + bias_c)), id);
            keys[row] = min_(keys[row], key);
        }
        if (!Covers) e0 += s0;
        e1 += s1, e2 += s2;
    }
}

/// Draws the part of the triangle that lies in the warp's pixels. The first of these pixels has the position
/// (x, y) in the tile. Returns false if the triangle cannot cover any of them.
__device__ __forceinline__ bool draw(const tile_triangle& t, i32 x, i32 y, i32 lane,
                                     unsigned long long (&keys)[warp_rows]) {
    i64 e[3];
    bool covers = true;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const i64 step_x = t.step_x[i], step_y = t.step_y[i], along = (warp_columns - 1) * step_x,
                  down = (warp_rows - 1) * step_y;
        const i64 at = t.e[i] + x * step_x + y * step_y;
        if (at + max_(along, i64{0}) + max_(down, i64{0}) < 0) return false;
        covers &= at + min_(along, i64{0}) + min_(down, i64{0}) >= 0;
        e[i] = at + lane * step_x;
    }
    if (covers) {
        draw_column<true>(t, e[0], e[1], e[2], keys);
    } else {
        draw_column<false>(t, e[0], e[1], e[2], keys);
    }
    return true;
}

/// The farthest depth of the warp's pixels: the upper half of their largest key.
__device__ __forceinline__ u32 largest_of(const unsigned long long (&keys)[warp_rows]) {
    u32 largest = 0;
#pragma unroll
    for (const unsigned long long key : keys) largest = max_(largest, static_cast<u32>(key >> 32));
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0U, largest);
#else
#pragma unroll
    for (int step = 16; step > 0; step /= 2) largest = max_(largest, __shfl_xor_sync(~0U, largest, step));
    return largest;
#endif
}

__global__ void __launch_bounds__(tile_threads, 3) raster_tiles(const __grid_constant__ raster_args a) {
    __shared__ tile_triangle found[tile_threads];
    __shared__ u32 found_count;
    __shared__ u32 all;
    __shared__ u32 largest;  // the farthest depth in the tile: the upper half of the largest key
    let_next_begin();
    wait_for_last();
    if (threadIdx.x == 0) all = min_(a.header->large + 1U, large_capacity), found_count = 0;
    __syncthreads();
    const u32 count = all;
    if (count == 0) return;
    const i32 left = static_cast<i32>(blockIdx.x) * tile_side, top = static_cast<i32>(blockIdx.y) * tile_side;
    const pixel_box tile{left, top, min_(left + tile_side, a.view.width) - 1,
                         min_(top + tile_side, a.view.height) - 1};
    const i32 warp = static_cast<i32>(from_first(threadIdx.x / 32)),
              lane = static_cast<i32>(threadIdx.x & 31U);
    const i32 x = (warp & 1) * warp_columns, y = (warp >> 1) * warp_rows;  // the warp's first pixel
    const auto shown = [&](i32 row) {
        return left + x + lane < a.view.width && top + y + row < a.view.height;
    };
    const auto place = [&](i32 row) { return a.keys + i64{top + y + row} * a.view.width + left + x + lane; };
    // True if any of the warp's pixels lie in the picture.
    const bool some = left + x < a.view.width && top + y < a.view.height;
    unsigned long long keys[warp_rows];
    bool loaded = false;
    f32 tile_farthest = 0.0F, farthest = 0.0F;  // 1/w; 0 if some pixel is empty
    for (u32 first = 0; first < count; first += tile_threads) {
        __syncthreads();  // after this, all threads have read the count and the depth of the previous batch,
                          // and the count is 0
        if (threadIdx.x == 0) largest = 0;
        const u32 at = first + threadIdx.x;
        if (at < count) {
            const large_box box = a.boxes[at];
            if (box.x0 <= tile.x1 && box.x1 >= tile.x0 && box.y0 <= tile.y1 && box.y1 >= tile.y0) {
                const large_triangle t = a.large[at];
                tile_triangle mine;
                if (nearest_corner(t.t) >= tile_farthest && set_up(t.t, tile, t.id, mine) &&
                    nearest_among(mine.nearest, 0, 0, tile_side, tile_side) >= tile_farthest)
                    found[atomicAdd(&found_count, 1U)] = mine;
            }
        }
        __syncthreads();
        const u32 n = found_count;
        if (n == 0) continue;
        if (!loaded) {
#pragma unroll
            for (i32 row = 0; row < warp_rows; ++row) keys[row] = shown(row) ? *place(row) : 0ULL;
            loaded = true;
        }
        u32 drawn = 0;
        for (u32 i = 0; i < n && some; ++i) {
            if (nearest_among(found[i].nearest, x, y, warp_columns, warp_rows) < farthest) continue;
            if (draw(found[i], x, y, lane, keys) && ++drawn % 8 == 0) farthest = float_of(~largest_of(keys));
        }
        const u32 mine = largest_of(keys);
        farthest = float_of(~mine);
        if (lane == 0) atomicMax(&largest, mine);
        __syncthreads();
        tile_farthest = float_of(~largest);
        if (threadIdx.x == 0) found_count = 0;
    }
    if (!loaded) return;
#pragma unroll
    for (i32 row = 0; row < warp_rows; ++row) {
        if (shown(row))
            *place(row) = keys[row];  // at this time no other thread accesses the keys of this
                                      // tile
    }
}

}  // namespace
}  // namespace carousel::kernels::cuda
