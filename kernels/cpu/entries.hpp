#pragma once
// The inner loops of the CPU backend, compiled once for each instruction set from the same source
// (cpu/simd_*.cpp) and selected at run time. All instruction sets give the same bytes: the arithmetic is
// defined in body/, and the compiler only uses wider vectors for it.

#include <atomic>

#include "kernels/body/setup.hpp"
#include "kernels/body/shade.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels::body {
struct surface_job;
}

namespace carousel::kernels::cpu {

inline constexpr u32 tile_width = 64, tile_height = 32;
/// In memory, a row of keys is longer than a row of the tile. So a vector store that begins inside a row does
/// not reach the next row.
inline constexpr u32 tile_stride = tile_width + 16;
inline constexpr u64 tile_keys = static_cast<u64>(tile_stride) * tile_height;

struct vertex_job {
    mesh_view mesh;
    body::viewport view;
    triangle_buffers out;
    u32 instance_count = 0;
};

/// Triangles of a chunk, by class.
struct classified {
    u32* small;
    u32* large;
    u32 small_count = 0, large_count = 0, culled = 0, not_finite = 0, bad_index = 0;
};

/// A triangle that was clipped or covers many tiles. It has a separate record, from which it is rastered.
struct special_triangle {
    body::screen_triangle triangle;
    u32 id;
    body::pixel_box box;
};

/// The record of a triangle that is binned for the tiles that it touches. It is written once, and read once
/// per tile as two vectors of four words. For boxes of at most 127 pixels, the second and third corner are
/// relative to the first, with 16 bits per coordinate; for larger boxes, only the id is used.
struct alignas(32) binned_triangle {
    i32 x, y;
    u32 to_second, to_third;  ///< the lower half is x, the upper half is y; if the box exceeds 127 pixels,
                              ///< both words are `wide_triangle`
    f32 inverse_w[3];
    u32 id;
};
/// -32768 in both halves, in units of 1/256 pixel: no corner in a box of 127 pixels has this value
inline constexpr u32 wide_triangle = 0x80008000U;

/// One page of a chain that lists, for one tile, the triangles of one worker.
struct bin_page {
    u32 next;  ///< index of the previous page, or no_page
    u32 count;
    u32 places[62];
};
inline constexpr u32 no_page = ~0U;

/// One worker's bins. The size of the bins' memory is fixed: when the memory is full, the round ends, the
/// tiles are rasterised, and binning continues in the next round.
struct worker_bins {
    u32* heads = nullptr;  ///< one page index per tile
    special_triangle* specials = nullptr;
    binned_triangle* triangles = nullptr;
    bin_page* pages = nullptr;
    u32 special_capacity = 0, triangle_capacity = 0, page_capacity = 0;
    u32 special_count = 0, triangle_count = 0, page_count = 0;
};

/// The sRGB tables in the format that the CPU uses. They are small, so that the tile's data stays in the L1
/// cache.
struct word_tables {
    u32 decode[body::decode_entries];  ///< bit patterns of the floats
    u8 encode[body::encode_entries];
};

struct fragment_job {
    mesh_view mesh;
    triangle_buffers in;
    body::viewport view;
    body::shading shading;
    const word_tables* tables = nullptr;
    u32 tiles_x = 0, tiles_y = 0;
    u32 small_count = 0, total_count = 0;  ///< copies of the frame's counters, limited to valid values
    u64 id_limit = 0;                      ///< max_instances * triangles
    raster_path path = raster_path::automatic;
    u32 samples = 1;  ///< with 4, `view` and the tiles are those of twice the picture's width and height
    u8* color = nullptr;
    const body::surface_job* surface = nullptr;  ///< not null: the tiles are resolved to a G-buffer
    u64* visibility = nullptr;                   ///< tile_keys per tile
    worker_bins* bins = nullptr;
    u32 workers = 0;
};

/// Work functions on ranges.
struct entries {
    const char* name;
    /// Transforms and classifies the triangles of one cluster.
    void (*cluster)(const vertex_job& job, u32 instance, u32 number, classified& out);
    /// Bins the triangles at list positions `begin` to `end` - 1; returns the first position for which there
    /// was no room, or `end`.
    u32 (*bin)(const fragment_job& job, u32 begin, u32 end, worker_bins& bins);
    /// `keys`: tile_keys elements, 64-byte aligned; cleared at the start of the first round.
    void (*raster_tile)(const fragment_job& job, u32 tile, u64* keys, bool first_round);
    void (*resolve_tile)(const fragment_job& job, u32 tile, const u64* keys);
    void (*sharpen_rows)(const sharpen_args& args, u32 begin, u32 end);
    /// The sum over the columns of a complete block (body/block_hash.hpp). The block may have any alignment.
    u64 (*hash_columns_of)(const unsigned char* block);
};

/// Returns the entries of the best instruction set that this processor supports;
/// CAROUSEL_SIMD=baseline|avx2|avx512 requests another one.
[[nodiscard]] const entries& best_entries();
/// Returns the entries of the instruction set `name`, or null if this processor or this build does not
/// support it.
[[nodiscard]] const entries* find_entries(std::string_view name);

// The functions of kernels.hpp on a CPU queue, asynchronous. If `use` is null, best_entries() is used.
void generate_mesh(device::queue& q, const generate_mesh_args& args);
void generate_texture(device::queue& q, const generate_texture_args& args);
void bound_clusters(device::queue& q, const bound_clusters_args& args);
void animate_instances(device::queue& q, const animate_args& args);
void vertex_stage(device::queue& q, const vertex_stage_args& args);
void fragment_stage(device::queue& q, const fragment_stage_args& args);
void sharpen(device::queue& q, const sharpen_args& args);
void hash_plane(device::queue& q, const hash_args& args);
[[nodiscard]] u64 fragment_scratch_bytes(u32 width, u32 height);
/// The minimum number of bytes with which run_fragment_stage works. With this minimum it may need many
/// rounds; meant for tests.
[[nodiscard]] u64 least_scratch_bytes(u32 width, u32 height);

// The same functions, but synchronous: they run in the calling thread and the given pool. The queue's worker
// calls them; tests call them with the entries of their choice.
void run_vertex_stage(device::cpu::pool& pool, const vertex_stage_args& args, const entries& use);
void run_fragment_stage(device::cpu::pool& pool, const fragment_stage_args& args, const entries& use);
void run_sharpen(device::cpu::pool& pool, const sharpen_args& args, const entries& use);
void run_hash_plane(device::cpu::pool& pool, const hash_args& args, const entries& use);

}  // namespace carousel::kernels::cpu
