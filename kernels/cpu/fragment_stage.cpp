// Fragment stage of the CPU backend, sort-middle: each worker sorts chunks of the triangle list into its own
// tile bins (no atomics). Then a counter assigns the tiles to the workers, which raster and resolve them. The
// bins' memory is fixed: when one worker's bins are full, the round ends, the triangles binned so far are
// rasterised, and the remaining triangles follow in further rounds. No triangle is dropped.
#include <atomic>
#include <vector>

#include "device/cpu/pool.hpp"
#include "kernels/cpu/shade_entries.hpp"

namespace carousel::kernels::cpu {
namespace {

constexpr u64 arena_bytes = 128ULL << 20;
constexpr u32 special_capacity = 4096;
constexpr u32 max_chunks = 4096;
constexpr u32 least_chunk = 2048;
constexpr u64 least_pages = 64, least_triangles = 256;
constexpr u32 max_workers = 256;

struct tile_counts {
    u32 x, y;
    [[nodiscard]] u64 all() const { return static_cast<u64>(x) * y; }
};
tile_counts tiles_of(u32 width, u32 height) {
    return {(width + tile_width - 1) / tile_width, (height + tile_height - 1) / tile_height};
}

u64 least_slice(u64 tiles) {
    return align_block(tiles * sizeof(u32)) + special_capacity * sizeof(special_triangle) +
           least_triangles * sizeof(binned_triangle) + least_pages * sizeof(bin_page);
}

const word_tables& tables() {
    static const word_tables made = [] {
        constexpr body::srgb_tables bytes = body::make_srgb_tables();
        word_tables words{};
        for (u32 i = 0; i < body::decode_entries; ++i) words.decode[i] = body::bits_of(bytes.decode[i]);
        for (u32 i = 0; i < body::encode_entries; ++i) words.encode[i] = bytes.encode[i];
        return words;
    }();
    return made;
}

/// Splits the scratch block into the visibility buffer and one slice per worker. Returns the number of
/// workers that have a slice.
u32 cut_scratch(fragment_job& job, const fragment_stage_args& args, u32 pool_size, worker_bins* bins) {
    const u64 tiles = static_cast<u64>(job.tiles_x) * job.tiles_y;
    std::byte* at = args.scratch;
    job.visibility = reinterpret_cast<u64*>(at);
    at += align_block(tiles * tile_keys * sizeof(u64));
    const u64 left = args.scratch_bytes - static_cast<u64>(at - args.scratch);
    // If the memory does not suffice for all threads, fewer threads sort triangles.
    const u64 most = left / least_slice(tiles);
    const u32 workers = static_cast<u32>(body::min_<u64>(body::min_<u64>(pool_size, most), max_workers));
    const u64 slice = left / workers / block_alignment * block_alignment;
    for (u32 w = 0; w < workers; ++w) {
        std::byte* const base = at + w * slice;
        const u64 heads = align_block(tiles * sizeof(u32)),
                  specials = special_capacity * sizeof(special_triangle);
        bins[w].heads = reinterpret_cast<u32*>(base);
        bins[w].specials = reinterpret_cast<special_triangle*>(base + heads);
        // Each triangle takes 32 bytes. One or two tiles refer to it, and each reference takes 4 bytes.
        const u64 rest = slice - heads - specials;
        const u64 triangles = body::max_(rest / 4 * 3 / block_alignment * block_alignment,
                                         least_triangles * sizeof(binned_triangle));
        const u64 kept =
            body::min_(triangles, rest - least_pages * sizeof(bin_page)) / sizeof(binned_triangle);
        bins[w].triangles = reinterpret_cast<binned_triangle*>(base + heads + specials);
        bins[w].pages = reinterpret_cast<bin_page*>(bins[w].triangles + kept);
        bins[w].special_capacity = special_capacity;
        bins[w].triangle_capacity = static_cast<u32>(kept);
        bins[w].page_capacity = static_cast<u32>((rest - kept * sizeof(binned_triangle)) / sizeof(bin_page));
    }
    job.bins = bins;
    job.workers = workers;
    return workers;
}

fragment_job make_job(const fragment_stage_args& args) {
    fragment_job job;
    job.mesh = view_mesh(args.mesh, args.mesh_block, args.moved);
    job.in = args.in;
    const u32 scale = args.samples == 4 ? 2 : 1;
    job.samples = args.samples;
    job.view = body::make_viewport(scale * args.width, scale * args.height, args.scene.camera.near);
    job.shading = body::make_shading(args.scene, args.width, args.height, args.mesh.counts);
    job.tables = &tables();
    const tile_counts tiles = tiles_of(scale * args.width, scale * args.height);
    job.tiles_x = tiles.x, job.tiles_y = tiles.y;
    job.id_limit = static_cast<u64>(args.in.max_instances) * args.mesh.counts.triangle_count;
    const u64 small = body::min_<u64>(args.in.counters->small, job.id_limit);
    job.small_count = static_cast<u32>(small);
    job.total_count =
        static_cast<u32>(small + body::min_<u64>(args.in.counters->large, job.id_limit - small));
    job.path = args.path;
    job.color = args.color;
    return job;
}

/// One round of binning. `progress[c]` is the first list position of chunk c that is not binned yet. Returns
/// true if all positions are binned.
bool bin_round(device::cpu::pool& pool, const fragment_job& job, const entries& use, u32 chunk,
               std::vector<u32>& progress) {
    const u64 tiles = static_cast<u64>(job.tiles_x) * job.tiles_y;
    for (u32 w = 0; w < job.workers; ++w) {
        job.bins[w].special_count = job.bins[w].triangle_count = job.bins[w].page_count = 0;
        for (u64 t = 0; t < tiles; ++t) job.bins[w].heads[t] = no_page;
    }
    std::atomic<bool> done{true};
    const auto body = [&](u64 begin, u64 end, unsigned worker) {
        for (u64 c = begin; c < end; ++c) {
            const u64 last = body::min_<u64>((c + 1) * chunk, job.total_count);
            if (progress[c] < last)
                progress[c] = use.bin(job, progress[c], static_cast<u32>(last), job.bins[worker]);
            if (progress[c] < last) done.store(false, std::memory_order_relaxed);
        }
    };
    if (job.workers < pool.size()) {
        body(0, progress.size(), 0);
    } else {
        pool.parallel_for(progress.size(), 1, body);
    }
    return done.load(std::memory_order_relaxed);
}

}  // namespace

u64 fragment_scratch_bytes(u32 width, u32 height) {
    const u64 tiles = tiles_of(width, height).all();
    return align_block(tiles * tile_keys * sizeof(u64)) + body::max_(arena_bytes, 2 * least_slice(tiles)) +
           block_alignment;
}

u64 least_scratch_bytes(u32 width, u32 height) {
    const u64 tiles = tiles_of(width, height).all();
    return align_block(tiles * tile_keys * sizeof(u64)) + least_slice(tiles) + block_alignment;
}

void run_fragment_stage(device::cpu::pool& pool, const fragment_stage_args& args, const entries& use) {
    fragment_job job = make_job(args);
    const body::surface_job surface =
        args.color == nullptr ? body::make_surface_job(args) : body::surface_job{};
    non_opaque_parts masked, blended;
    if (args.color == nullptr) {
        job.surface = &surface;
        const mesh_counts& counts = args.mesh.counts;
        if (counts.masked_count > 0)
            masked = find_non_opaque_parts(pool, job, job.view, 0, counts.masked_count);
        if (counts.blended_count > 0 && args.surface.layers != nullptr)
            blended = find_non_opaque_parts(
                pool, job, body::make_viewport(args.width, args.height, args.scene.camera.near),
                counts.masked_count, counts.blended_count);
    }
    const shade_entries& shade = shade_entries_of(use);
    void (*const resolve_tile)(const fragment_job&, u32, const u64*) =
        job.surface == nullptr ? use.resolve_tile
                               : (args.samples == 4 ? shade.samples_tile : shade.surface_tile);
    worker_bins bins[max_workers];
    cut_scratch(job, args, pool.size(), bins);
    const u32 chunk = body::max_(least_chunk, job.total_count / max_chunks + 1);
    std::vector<u32> progress((static_cast<u64>(job.total_count) + chunk - 1) / chunk);
    for (u64 c = 0; c < progress.size(); ++c) progress[c] = static_cast<u32>(c * chunk);
    const u64 tiles = static_cast<u64>(job.tiles_x) * job.tiles_y;
    for (bool first = true, last = false; !last; first = false) {
        last = bin_round(pool, job, use, chunk, progress);
        pool.parallel_for(tiles, 4, [&](u64 begin, u64 end, unsigned) {
            // The keys are stored in the visibility buffer only if there are several rounds; if there is only
            // one round, they stay in the nearest caches.
            alignas(64) u64 own[tile_keys];
            std::vector<u64> layers;
            const bool only = first && last;
            for (u64 t = begin; t < end; ++t) {
                u64* const keys = only ? own : job.visibility + t * tile_keys;
                use.raster_tile(job, static_cast<u32>(t), keys, first);
                if (last && !masked.parts.empty()) shade.masked_tile(job, static_cast<u32>(t), keys, masked);
                if (last) resolve_tile(job, static_cast<u32>(t), keys);
                if (last && args.surface.layers != nullptr) {
                    layers.assign(args.surface.layer_count * tile_keys, body::empty_key);
                    if (!blended.parts.empty())
                        shade.blended_tile(job, static_cast<u32>(t), keys, layers.data(), blended);
                    shade.layers_tile(job, static_cast<u32>(t), layers.data());
                }
            }
        });
    }
}

void fragment_stage(device::queue& q, const fragment_stage_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_fragment_stage(pool, args, best_entries()); });
}

}  // namespace carousel::kernels::cpu
