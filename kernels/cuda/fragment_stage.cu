// Fragment stage on CUDA: a visibility buffer of 64-bit keys, filled with atomic minima in three tiers, then
// one resolve.
//   small   one thread per triangle (box of at most 96 pixels)
//   medium  one warp per triangle (box of at most 4096 pixels, or a sliver)
//   large   one block per tile of 64x64 pixels, which scans all larger triangles and skips those that are
//           hidden; a triangle that does not fit into their store is drawn by its warp
// Each tier computes the same integer edges and the same depth, so the picture does not depend on the tier.
// If a grid may turn out to have no work, it has only as many blocks as the device can run at once: further
// blocks would start after others have ended, find no work, and still cost microseconds. Each kernel begins
// while its predecessor ends (launch.cuh). raster_small sets up its first triangles while the keys are
// cleared. raster_large runs concurrently with the rest of raster_small, which is correct because both only
// take minima. raster_large ends after raster_small, so that the tiles and the resolve see the results of
// both. Scratch: header (256 bytes), keys u64[h][w], boxes, triangles. The keys and the counter are both
// initialised by setting all bits. So the value of the counter is its stored word plus one.
#include "kernels/body/layers.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/large.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/resolve.cuh"
#include "kernels/cuda/resolve_surface.cuh"
#include "kernels/cuda/tiles.cuh"

namespace carousel::kernels::cuda {
namespace {

__global__ void __launch_bounds__(256) clear(uint4* words, u32 count) {
    let_next_begin();
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) words[i] = {~0U, ~0U, ~0U, ~0U};
}

/// Small triangles, one thread each. The reads of a triangle depend on each other (list, then indices, then
/// positions). So the list is read two triangles in advance, and the indices one triangle in advance.
__global__ void __launch_bounds__(256, resident_blocks(5))
    raster_small(const __grid_constant__ raster_args a) {
    const u32 small = small_count(a), stride = gridDim.x * blockDim.x;
    const auto listed = [&](u64 at) { return at < small ? a.in.list[at] : ~0U; };
    u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x;
    u32 id = listed(at), next = listed(at + stride);
    screen_triangle t = fetch_small(a, corners_of(a, id));
    wait_for_last();   // waits until the keys are cleared; the code before this call reads only the frame's
                       // input
    let_next_begin();  // called only after the wait: raster_large, which may start after this call, relies on
                       // the cleared keys and header and does not wait itself
    for (; at < small; at += stride) {
        const u32 now = id;
        const corner_numbers corners = corners_of(a, next);
        id = next, next = listed(at + 2 * u64{stride});
        const pixel_box box = box_of(t, a.view.width, a.view.height);
        if (!box.empty() && narrow(t)) {
            const i32 area = double_area<i32>(t);
            if (area > 0) raster_by_thread<i32>(a, t, box, area, now);
        }
        t = fetch_small(a, corners);
    }
}

/// The path "small": one thread draws each triangle of the list, whatever the triangle's size is.
__global__ void __launch_bounds__(256) raster_all_by_thread(const __grid_constant__ raster_args a) {
    const u32 small = small_count(a);
    const u64 end = u64{small} + large_count(a);
    for (u64 at = u64{blockIdx.x} * blockDim.x + threadIdx.x; at < end; at += u64{gridDim.x} * blockDim.x) {
        const u32 id = entry(a, static_cast<u32>(at), small);
        const fetched f = fetch(a, corners_of(a, id));
        if (!f.valid) continue;
        clip_vertex polygon[max_clipped_vertices];
        const bool clipped = needs_clip(f);
        const u32 n = clipped ? clipped_polygon(a, id, polygon) : 3;
        for (u32 k = 1; k + 1 < n; ++k) {
            const screen_triangle t =
                clipped ? fan_triangle(a, polygon, k) : make_triangle(f.v[0], f.v[1], f.v[2]);
            const pixel_box box = box_of(t, a.view.width, a.view.height);
            const i64 area = double_area(t);
            if (!box.empty() && area > 0) raster_by_thread<i64>(a, t, box, area, id);
        }
    }
}

/// The key that hides a pixel's transparent fragments; of four samples, the farthest one's.
template <u32 samples>
__device__ __forceinline__ unsigned long long hiding_key(const surface_args& s, u32 x, u32 y) {
    if constexpr (samples == 1) return s.keys[u64{y} * s.job.width + x];
    const pixel_keys keys = keys_of(s, x, y);
    return max_(max_(keys.of[0], keys.of[1]), max_(keys.of[2], keys.of[3]));
}

/// Draws triangles that are not opaque, each by one warp, 32 pixels of a row of its box at a time. Masked
/// ones go into the keys; transparent ones that no key hides go into the layers. With four samples, masked
/// ones are drawn into the picture of samples, and transparent ones into that of pixels; `a.view` and `s` are
/// of the picture that is drawn.
template <bool masked, u32 samples>
__global__ void __launch_bounds__(256)
    raster_non_opaque(const __grid_constant__ surface_args s, const __grid_constant__ raster_args a) {
    const u32 before = masked ? 0 : a.mesh.counts.masked_count,
              count = masked ? a.mesh.counts.masked_count : a.mesh.counts.blended_count;
    const u32 per_instance = non_opaque_count(a.mesh.counts), lane = threadIdx.x & 31U;
    const u64 end = u64{min_(a.in.counters->instance_count, a.in.max_instances)} * count;
    const u64 pixels = u64{s.job.width} * s.job.height;
    for (u64 at = (u64{blockIdx.x} * 256 + threadIdx.x) / 32; at < end; at += u64{gridDim.x} * 8) {
        const u32 instance = static_cast<u32>(at / count);
        const u32 id =
            a.id_limit + instance * per_instance + before + static_cast<u32>(at - u64{instance} * count);
        const screen_parts parts = parts_of(s.job, a.view, id);
        for (u32 k = 0; k < parts.count; ++k) {
            const pixel_box box = box_of(parts.part[k], a.view.width, a.view.height);
            const pixel_test test = make_pixel_test(parts.part[k]);
            for (u32 y = static_cast<u32>(box.y0); y <= static_cast<u32>(box.y1); ++y) {
                for (u32 x = static_cast<u32>(box.x0) + lane; x <= static_cast<u32>(box.x1); x += 32) {
                    unsigned long long key = key_at(test, x, y, id);
                    const u64 place = u64{y} * s.job.width + x;
                    if (key >= (masked ? a.keys[place] : hiding_key<samples>(s, x, y))) continue;
                    const f32 px = centre_x(s.job.shade, x), py = centre_y(s.job.shade, y);
                    if (masked) {
                        if (passes_mask(s.job, id, px, py)) atomicMin(a.keys + place, key);
                    } else if (is_visible_layer(s.job, id, px, py)) {
                        // Each layer keeps the smaller key and passes the other one on (add_layer).
                        for (u32 i = 0; i < s.job.out.layer_count && key != empty_key; ++i)
                            key = max_(atomicMin(s.layers + i * pixels + place, key), key);
                    }
                }
            }
        }
    }
}

u64 key_bytes(u32 width, u32 height, u32 samples = 1) {
    return align_block(u64{width} * height * 8 * samples);
}

/// The G-buffer's job for the picture whose pixels are the samples, in which triangles with a mask are drawn.
surface_job job_of_samples(surface_job job) {
    job.shade = doubled(job.shade);
    job.width *= 2;
    job.height *= 2;
    return job;
}

/// Draws what is not opaque and writes the G-buffer. `layers`: memory for the transparent layers' keys.
void draw_surface(device::queue& q, const fragment_stage_args& args, const raster_args& a,
                  std::byte* layers) {
    const bool sampled = args.samples == 4;
    surface_args s{make_surface_job(args), a.keys, nullptr};
    const u64 masked = u64{args.in.max_instances} * args.mesh.counts.masked_count,
              blended = u64{args.in.max_instances} * args.mesh.counts.blended_count;
    if (masked > 0) {
        const surface_args drawn{sampled ? job_of_samples(s.job) : s.job, a.keys, nullptr};
        launch("raster_masked", raster_non_opaque<true, 1>, blocks_striding(masked * 32, 256, 4), 256, q,
               drawn, a);
    }
    if (args.surface.layers != nullptr) {
        s.layers = reinterpret_cast<unsigned long long*>(layers);
        const u64 layer_words_of_16 = u64{args.width} * args.height * args.surface.layer_count / 2 + 1;
        launch("clear_layers", clear, blocks_for(layer_words_of_16, 256), 256, q,
               reinterpret_cast<uint4*>(s.layers), static_cast<u32>(layer_words_of_16));
        if (blended > 0) {
            raster_args of_pixels = a;
            of_pixels.view = make_viewport(args.width, args.height, args.scene.camera.near);
            launch("raster_blended", sampled ? raster_non_opaque<false, 4> : raster_non_opaque<false, 1>,
                   blocks_striding(blended * 32, 256, 4), 256, q, s, of_pixels);
        }
    }
    const dim3 blocks((args.width + 31) / 32, (args.height + 7) / 8);
    launch_after("resolve_surface", sampled ? resolve_samples : resolve_surface, blocks, dim3(32, 8), q, s);
}

}  // namespace

u64 fragment_scratch_bytes(u32 width, u32 height, u32 layers, u32 samples) {
    return block_alignment + key_bytes(width, height, samples) +
           u64{large_capacity} * (sizeof(large_box) + sizeof(large_triangle)) +
           key_bytes(width, height) * layers;
}

void fragment_stage(device::queue& q, const fragment_stage_args& args) {
    // Of the picture that is rasterised: its pixels are the samples.
    const u32 scale = args.samples == 4 ? 2 : 1, width = scale * args.width, height = scale * args.height;
    raster_args a{};
    a.mesh = view_mesh(args.mesh, args.mesh_block, args.moved);
    a.in = args.in;
    a.view = make_viewport(width, height, args.scene.camera.near);
    a.header = reinterpret_cast<scratch_header*>(args.scratch);
    a.keys = reinterpret_cast<unsigned long long*>(args.scratch + block_alignment);
    std::byte* const store = args.scratch + block_alignment + key_bytes(width, height);
    a.boxes = reinterpret_cast<large_box*>(store);
    a.large = reinterpret_cast<large_triangle*>(store + u64{large_capacity} * sizeof(large_box));
    a.id_limit = args.in.max_instances * args.mesh.counts.triangle_count;
    a.path = args.path;
    const u64 words = (block_alignment + key_bytes(width, height)) / sizeof(uint4);
    launch("clear", clear, blocks_for(words, 256), 256, q, reinterpret_cast<uint4*>(args.scratch),
           static_cast<u32>(words));
    const dim3 tiles((width + tile_side - 1) / tile_side, (height + tile_side - 1) / tile_side);
    if (a.path == raster_path::small) {
        launch("raster_all_by_thread", raster_all_by_thread, blocks_striding(a.id_limit, 256, 8), 256, q, a);
    } else {
        const u32 large_blocks = blocks_striding(u64{a.id_limit} * 32, 256, 3);
        if (a.path == raster_path::automatic) {
            launch_after("raster_small", raster_small, blocks_striding(a.id_limit, 256, 20), 256, q, a);
            launch_after("raster_large", raster_large, large_blocks, 256, q, a);
        } else {
            // Launched in stream order after the clear kernel, because raster_large itself does not wait for
            // that kernel.
            launch("raster_large", raster_large, large_blocks, 256, q, a);
        }
        if (a.path != raster_path::medium)
            launch_after("raster_tiles", raster_tiles, tiles, tile_threads, q, a);
    }
    if (args.before_resolve.call != nullptr) args.before_resolve.call(args.before_resolve.with);
    if (args.color == nullptr) {
        draw_surface(q, args, a, store + u64{large_capacity} * (sizeof(large_box) + sizeof(large_triangle)));
        return;
    }
    const resolve_args r{a.mesh,
                         args.in.instances,
                         a.keys,
                         make_shading(args.scene, args.width, args.height, args.mesh.counts),
                         args.width,
                         args.height,
                         reinterpret_cast<u32*>(args.color)};
    const dim3 blocks((args.width + 31) / 32, (args.height + 7) / 8);
    void (*const shade)(resolve_args) = r.shade.mapped != 0 ? resolve<true> : resolve<false>;
    launch_after("resolve", shade, blocks, dim3(32, 8), q, r);
}

}  // namespace carousel::kernels::cuda
