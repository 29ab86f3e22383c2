#pragma once
// The loops of looks.hpp and of the G-buffer over rows and tiles, compiled once for each instruction set from
// the same source (cpu/looks_*.cpp), as those of entries.hpp.

#include <vector>

#include "kernels/body/gbuffer.hpp"
#include "kernels/body/light.hpp"
#include "kernels/body/post.hpp"
#include "kernels/body/taa.hpp"
#include "kernels/cpu/entries.hpp"
#include "kernels/motion.hpp"

namespace carousel::kernels::cpu {

/// Parts of triangles that are not opaque, and for each tile the numbers of those that touch it.
struct non_opaque_parts {
    std::vector<special_triangle> parts;
    std::vector<u32> begin;   ///< one per tile, and the end
    std::vector<u32> places;  ///< numbers of parts
};
/// Those of the triangles [first, first + count) of all drawn instances. `view`: that in which they are
/// drawn; the tiles are those of the job.
[[nodiscard]] non_opaque_parts find_non_opaque_parts(device::cpu::pool& pool, const fragment_job& job,
                                                     const body::viewport& view, u32 first, u32 count);

struct shade_entries {
    /// As entries::resolve_tile, for a G-buffer.
    void (*surface_tile)(const fragment_job& job, u32 tile, const u64* keys);
    /// The same with four samples per pixel; a tile of keys is one of half the width and height in pixels.
    void (*samples_tile)(const fragment_job& job, u32 tile, const u64* keys);
    /// Draws those parts of triangles with an alpha mask that touch the tile into its keys.
    void (*masked_tile)(const fragment_job& job, u32 tile, u64* keys, const non_opaque_parts& parts);
    /// Adds visible transparent fragments to the tile's layers, which have tile_keys keys each.
    void (*blended_tile)(const fragment_job& job, u32 tile, const u64* keys, u64* layers,
                         const non_opaque_parts& parts);
    /// Writes the tile's elements of the plane `layers`, after surface_tile().
    void (*layers_tile)(const fragment_job& job, u32 tile, const u64* layers);
    // Rows [begin, end).
    void (*occlusion_rows)(const body::light_pass& p, u32 begin, u32 end);
    void (*light_rows)(const body::light_pass& p, u32 begin, u32 end);
    void (*bloom_down_rows)(const body::bloom_down_pass& p, u32 begin, u32 end);
    void (*bloom_up_rows)(const body::bloom_up_pass& p, u32 begin, u32 end);
    void (*meter_rows)(const body::meter_pass& p, u32 begin, u32 end);
    void (*tone_rows)(const body::tone_pass& p, u32 begin, u32 end);
    void (*smooth_rows)(const body::smooth_pass& p, u32 begin, u32 end);
    void (*taa_rows)(const body::taa_pass& p, u32 begin, u32 end);
    /// `sums`: two elements per row, as compare_args::rows.
    void (*compare_rows)(const body::compare_pass& p, u32* sums, u32 begin, u32 end);
    /// Vertices [begin, end).
    void (*move_range)(const motion_view& m, const move_args& args, u32 begin, u32 end);
};

/// The loops for the instruction set of `same`.
[[nodiscard]] const shade_entries& shade_entries_of(const entries& same);

void light(device::queue& q, const light_args& args);
void post(device::queue& q, const post_args& args);
void taa(device::queue& q, const taa_args& args);
void compare(device::queue& q, const compare_args& args);
void compute_pose(device::queue& q, const pose_args& args);
void move_vertices(device::queue& q, const move_args& args);
// As the functions above, synchronous, in the calling thread and the pool; for tests, with the entries of
// their choice.
void run_light(device::cpu::pool& pool, const light_args& args, const entries& use);
void run_post(device::cpu::pool& pool, const post_args& args, const entries& use);
void run_taa(device::cpu::pool& pool, const taa_args& args, const entries& use);
void run_compare(device::cpu::pool& pool, const compare_args& args, const entries& use);
void run_pose(const pose_args& args);
void run_move(device::cpu::pool& pool, const move_args& args, const entries& use);

}  // namespace carousel::kernels::cpu
