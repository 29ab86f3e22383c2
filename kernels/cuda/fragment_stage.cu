// Fragment stage on CUDA: a visibility buffer of 64-bit keys, filled by atomic minima in three tiers, then one resolve.
//   small   a thread a triangle (box of at most 96 pixels)
//   medium  a warp a triangle (box of at most 4096 pixels), clipped triangles among them
//   large   (triangle, 64x64 tile) items, a block each; a full item queue makes the warp raster its tiles itself
// Each tier computes the same integer edges and the same depth, so the picture doesn't depend on which one ran.
// Scratch: header (256 bytes), keys u64[h][w], items. One fill with ones clears keys and counters alike: a counter's value is
// its stored word plus one.
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/raster.cuh"
#include "kernels/cuda/resolve.cuh"

namespace carousel::kernels::cuda {
namespace {

/// Small triangles, a thread each.
__global__ void __launch_bounds__(256) raster_small(raster_args a) {
    const u32 small = small_count(a);
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < small; at += u64{gridDim.x} * blockDim.x) {
        const u32 id = a.in.list[at];
        const fetched f = fetch(a, id);
        if (!f.valid || needs_clip(f)) continue;
        const screen_triangle t = make_triangle(f.v[0], f.v[1], f.v[2]);
        const pixel_box box = box_of(t, a.view.width, a.view.height);
        const i64 area = double_area(t);
        if (!box.empty() && area > 0 && narrow(t)) raster_by_thread<i32>(a, t, box, area, id);
    }
}

/// Path "small": every triangle of the list by a thread, whatever its size.
__global__ void __launch_bounds__(256) raster_all_by_thread(raster_args a) {
    const u32 small = small_count(a);
    const u64 end = u64{small} + large_count(a);
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < end; at += u64{gridDim.x} * blockDim.x) {
        const u32 id = entry(a, static_cast<u32>(at), small);
        const fetched f = fetch(a, id);
        if (!f.valid) continue;
        clip_vertex polygon[max_clipped_vertices];
        const bool clipped = needs_clip(f);
        const u32 n = clipped ? clipped_polygon(a, id, polygon) : 3;
        for (u32 k = 1; k + 1 < n; ++k) {
            const screen_triangle t = clipped ? fan_triangle(a, polygon, k) : make_triangle(f.v[0], f.v[1], f.v[2]);
            const pixel_box box = box_of(t, a.view.width, a.view.height);
            const i64 area = double_area(t);
            if (!box.empty() && area > 0) raster_by_thread<i64>(a, t, box, area, id);
        }
    }
}

/// True when no pixel of the tile can be inside: the corner that is deepest in some edge's inner half lies outside it.
__device__ __forceinline__ bool tile_outside(const screen_triangle& t, const pixel_box& tile) {
    const edge_functions<i64> e = edges_at<i64>(t, tile.x0, tile.y0);
    const i64 columns = tile.x1 - tile.x0, rows = tile.y1 - tile.y0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const i64 most = e.e[i] + (e.step_x[i] > 0 ? columns * e.step_x[i] : 0) + (e.step_y[i] > 0 ? rows * e.step_y[i] : 0);
        if (most + e.bias[i] < 0) return true;
    }
    return false;
}
__device__ __forceinline__ pixel_box tile_part(const pixel_box& box, i32 tile_x, i32 tile_y) {
    return {max_(box.x0, tile_x * item_tile), max_(box.y0, tile_y * item_tile), min_(box.x1, tile_x * item_tile + item_tile - 1),
            min_(box.y1, tile_y * item_tile + item_tile - 1)};
}

/// One screen triangle by a warp: at once when medium, else an item for each tile that it may touch.
__device__ __forceinline__ void medium_or_items(const raster_args& a, const screen_triangle& t, u32 id, u32 part) {
    const pixel_box box = box_of(t, a.view.width, a.view.height);
    const i64 area = double_area(t);
    if (box.empty() || area <= 0) return;
    const i64 pixels = i64{box.x1 - box.x0 + 1} * (box.y1 - box.y0 + 1);
    if (a.path == raster_path::medium || (a.path == raster_path::automatic && pixels <= medium_area)) {
        raster_by_warp(a, t, box, area, id);
        return;
    }
    const u32 lane = threadIdx.x & 31U;
    const i32 tx0 = box.x0 / item_tile, ty0 = box.y0 / item_tile;
    const i32 columns = box.x1 / item_tile - tx0 + 1, tiles = columns * (box.y1 / item_tile - ty0 + 1);
    for (i32 first = 0; first < tiles; first += 32) {
        const i32 tile = first + static_cast<i32>(lane);
        const i32 x = tx0 + tile % columns, y = ty0 + tile / columns;
        const bool touched = tile < tiles && !tile_outside(t, tile_part(box, x, y));
        const u32 mask = __ballot_sync(~0U, touched);
        if (mask == 0) continue;
        u32 base = 0;
        if (lane == 0) base = atomicAdd(&a.header->items, __popc(mask)) + 1;
        base = __shfl_sync(~0U, base, 0);
        const u64 at = u64{base} + __popc(mask & ((1U << lane) - 1U));
        if (touched && at < item_capacity) a.items[at] = {id, static_cast<u32>(y * a.tiles_x + x) | part << 16};
        // no room: the warp rasters these tiles itself
        for (u32 rest = __ballot_sync(~0U, touched && at >= item_capacity); rest != 0; rest &= rest - 1) {
            const i32 late = first + __ffs(static_cast<int>(rest)) - 1;
            raster_by_warp(a, t, tile_part(box, tx0 + late % columns, ty0 + late / columns), area, id);
        }
    }
}

/// Everything that isn't small; with path medium or large every triangle of the list. A warp an entry.
__global__ void __launch_bounds__(256) raster_large(raster_args a) {
    const u32 small = from_first(small_count(a));
    const u32 begin = a.path == raster_path::automatic ? small : 0U;
    const u64 end = u64{small} + from_first(large_count(a));
    const u64 warps = u64{gridDim.x} * (blockDim.x / 32);
    for (u64 at = begin + u64{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; at < end; at += warps) {
        const u32 id = from_first(entry(a, static_cast<u32>(at), small));
        const fetched f = fetch_by_warp(a, id);
        if (!f.valid) continue;
        clip_vertex polygon[max_clipped_vertices];
        u32 n = 3;
        const bool clipped = needs_clip(f);
        if (clipped) {
            n = from_first(clipped_polygon(a, id, polygon));
            for (u32 k = 0; k < max_clipped_vertices; ++k) {
                polygon[k].x = float_of(from_first(bits_of(polygon[k].x)));
                polygon[k].y = float_of(from_first(bits_of(polygon[k].y)));
                polygon[k].w = float_of(from_first(bits_of(polygon[k].w)));
            }
        }
        for (u32 k = 1; k + 1 < n; ++k) {
            const screen_triangle t = clipped ? fan_triangle(a, polygon, k) : make_triangle(f.v[0], f.v[1], f.v[2]);
            medium_or_items(a, t, id, clipped ? k : 0);
        }
    }
}

/// A block an item.
__global__ void __launch_bounds__(256) raster_items(raster_args a) {
    const u32 count = min_(a.header->items + 1U, item_capacity);
    for (u32 at = blockIdx.x; at < count; at += gridDim.x) {
        const item work = a.items[at];
        const fetched f = fetch(a, work.id);
        if (!f.valid) continue;
        const u32 part = work.place >> 16;
        const i32 tile = static_cast<i32>(work.place & 0xffffU);
        screen_triangle t = make_triangle(f.v[0], f.v[1], f.v[2]);
        if (part != 0) {
            clip_vertex polygon[max_clipped_vertices];
            const u32 n = clipped_polygon(a, work.id, polygon);
            if (part + 1 >= n) continue;  // the slot was refilled meanwhile
            t = fan_triangle(a, polygon, part);
        }
        const i64 area = double_area(t);
        const pixel_box box = tile_part(box_of(t, a.view.width, a.view.height), tile % a.tiles_x, tile / a.tiles_x);
        if (box.empty() || area <= 0) continue;
        const i32 x = static_cast<i32>(threadIdx.x & 31U), y = static_cast<i32>(threadIdx.x >> 5);
        if (narrow(t)) {
            raster_by_group<i32>(a, t, box, area, work.id, x, y, 32, 8);
        } else {
            raster_by_group<i64>(a, t, box, area, work.id, x, y, 32, 8);
        }
    }
}

u64 key_bytes(u32 width, u32 height) { return align_block(u64{width} * height * 8); }

}  // namespace

u64 fragment_scratch_bytes(u32 width, u32 height) {
    return block_alignment + key_bytes(width, height) + u64{item_capacity} * sizeof(item);
}

void fragment_stage(device::queue& q, const fragment_stage_args& args) {
    const cudaStream_t stream = stream_of(q);
    raster_args a{};
    a.mesh = view_mesh(args.mesh, args.mesh_block);
    a.in = args.in;
    a.view = make_viewport(args.width, args.height, args.scene.camera.near);
    a.header = reinterpret_cast<scratch_header*>(args.scratch);
    a.keys = reinterpret_cast<unsigned long long*>(args.scratch + block_alignment);
    a.items = reinterpret_cast<item*>(args.scratch + block_alignment + key_bytes(args.width, args.height));
    a.id_limit = args.in.max_instances * args.mesh.counts.triangle_count;
    a.tiles_x = (a.view.width + item_tile - 1) / item_tile;
    a.path = args.path;
    check(cudaMemsetAsync(args.scratch, 0xff, block_alignment + key_bytes(args.width, args.height), stream),
          "clearing the visibility buffer");
    if (a.path == raster_path::small) {
        raster_all_by_thread<<<blocks_striding(a.id_limit, 256, 8), 256, 0, stream>>>(a);
    } else {
        if (a.path == raster_path::automatic) raster_small<<<blocks_striding(a.id_limit, 256, 32), 256, 0, stream>>>(a);
        raster_large<<<blocks_striding(u64{a.id_limit} * 32, 256, 8), 256, 0, stream>>>(a);
        raster_items<<<multiprocessors() * 8, 256, 0, stream>>>(a);
    }
    if (args.before_resolve.call != nullptr) args.before_resolve.call(args.before_resolve.with);
    const resolve_args r{a.mesh,
                         args.in.instances,
                         a.keys,
                         make_shading(args.scene, args.width, args.height, args.mesh.counts),
                         args.width,
                         args.height,
                         reinterpret_cast<u32*>(args.color)};
    resolve<<<dim3((args.width + 31) / 32, (args.height + 7) / 8), dim3(32, 8), 0, stream>>>(r);
    check_launch("fragment_stage");
}

}  // namespace carousel::kernels::cuda
