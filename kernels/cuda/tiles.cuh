#pragma once
// The tile tier: a block owns 64x64 pixels, whose keys its threads keep in registers. It looks through the boxes of all large
// triangles, a batch at a time, sets up those that touch the tile, and draws them without a single atomic; at the end the keys
// meet what the other tiers have left. However many triangles lie upon each other, nothing grows and nobody waits for a word.
// Included by fragment_stage.cu alone.

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/raster.cuh"

namespace carousel::kernels::cuda {
namespace {

constexpr u32 tile_threads = 256;
constexpr i32 tile_rows = tile_side * tile_side / static_cast<i32>(tile_threads);  // a thread's pixels: a column, every fourth row

/// A triangle as a tile draws it: edges at the tile's first pixel, with the bias in them.
struct tile_triangle {
    i64 e[3], step_x[3], step_y[3];
    depth_plane depth;
    u32 id;
    u16 bias_b, bias_c;  ///< what was taken off the edges that the depth is made from
    bool covers;         ///< the whole tile
};

/// False when no pixel of the tile can be inside.
__device__ __forceinline__ bool set_up(const screen_triangle& t, const pixel_box& tile, u32 id, tile_triangle& out) {
    const edge_functions<i64> e = edges_at<i64>(t, tile.x0, tile.y0);
    bool covers = true, outside = false;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const i64 at = e.e[i] + e.bias[i], x = (tile.x1 - tile.x0) * e.step_x[i], y = (tile.y1 - tile.y0) * e.step_y[i];
        outside |= at + max_(x, i64{0}) + max_(y, i64{0}) < 0;  // the corner that is deepest inside
        covers &= at + min_(x, i64{0}) + min_(y, i64{0}) >= 0;  // the one that is farthest out
        out.e[i] = at, out.step_x[i] = e.step_x[i], out.step_y[i] = e.step_y[i];
    }
    out.depth = make_depth(t, double_area(t));
    out.id = id;
    out.bias_b = static_cast<u16>(-e.bias[1]), out.bias_c = static_cast<u16>(-e.bias[2]);
    out.covers = covers;
    return !outside;
}

template <bool Covers>
__device__ __forceinline__ void draw(const tile_triangle& t, i32 x, i32 y, unsigned long long (&keys)[tile_rows]) {
    i64 e0 = t.e[0] + x * t.step_x[0] + y * t.step_y[0];
    i64 e1 = t.e[1] + x * t.step_x[1] + y * t.step_y[1], e2 = t.e[2] + x * t.step_x[2] + y * t.step_y[2];
    const i64 s0 = 4 * t.step_y[0], s1 = 4 * t.step_y[1], s2 = 4 * t.step_y[2];
    const u32 id = t.id;
    const depth_plane depth = t.depth;
    const i64 bias_b = t.bias_b, bias_c = t.bias_c;
#pragma unroll
    for (i32 row = 0; row < tile_rows; ++row) {
        if (Covers || (e0 | e1 | e2) >= 0) {
            const unsigned long long key =
                make_key(depth_bits(depth, static_cast<f32>(e1 + bias_b), static_cast<f32>(e2 + bias_c)), id);
            keys[row] = min_(keys[row], key);
        }
        if (!Covers) e0 += s0;
        e1 += s1, e2 += s2;
    }
}

__global__ void __launch_bounds__(tile_threads, 2) raster_tiles(const __grid_constant__ raster_args a) {
    __shared__ tile_triangle found[tile_threads];
    __shared__ u32 found_count;
    __shared__ u32 all;
    let_next_begin();
    wait_for_last();
    if (threadIdx.x == 0) all = min_(a.header->large + 1U, large_capacity);
    __syncthreads();
    const u32 count = all;
    if (count == 0) return;
    const i32 left = static_cast<i32>(blockIdx.x) * tile_side, top = static_cast<i32>(blockIdx.y) * tile_side;
    const pixel_box tile{left, top, min_(left + tile_side, a.view.width) - 1, min_(top + tile_side, a.view.height) - 1};
    const i32 x = static_cast<i32>(threadIdx.x) & (tile_side - 1), y = static_cast<i32>(threadIdx.x) / tile_side;
    unsigned long long keys[tile_rows];
#pragma unroll
    for (unsigned long long& key : keys) key = empty_key;
    for (u32 first = 0; first < count; first += tile_threads) {
        if (threadIdx.x == 0) found_count = 0;
        __syncthreads();
        const u32 at = first + threadIdx.x;
        if (at < count) {
            const large_box box = a.boxes[at];
            if (box.x0 <= tile.x1 && box.x1 >= tile.x0 && box.y0 <= tile.y1 && box.y1 >= tile.y0) {
                const large_triangle t = a.large[at];
                tile_triangle mine;
                if (set_up(t.t, tile, t.id, mine)) found[atomicAdd(&found_count, 1U)] = mine;
            }
        }
        __syncthreads();
        const u32 n = found_count;
        for (u32 i = 0; i < n; ++i) {
            if (found[i].covers) {
                draw<true>(found[i], x, y, keys);
            } else {
                draw<false>(found[i], x, y, keys);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (i32 row = 0; row < tile_rows; ++row) {
        const i32 py = top + y + 4 * row;
        if (keys[row] != empty_key && left + x < a.view.width && py < a.view.height) {
            atomicMin(a.keys + i64{py} * a.view.width + left + x, keys[row]);
        }
    }
}

}  // namespace
}  // namespace carousel::kernels::cuda
