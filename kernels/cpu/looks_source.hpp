// No include guard on purpose: included once by each cpu/looks_NAME.cpp, which defines CAROUSEL_SIMD (the
// namespace) and is compiled for one instruction set. The rule of cpu/simd_source.hpp applies: only functions
// that are forced inline or local to the namespace may be called.

#include "kernels/body/layers.hpp"
#include "kernels/body/light_pixel.hpp"
#include "kernels/body/move.hpp"
#include "kernels/body/non_opaque.hpp"
#include "kernels/body/samples.hpp"
#include "kernels/cpu/shade_entries.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define CAROUSEL_FORCE static inline __attribute__((always_inline))

namespace carousel::kernels::cpu::CAROUSEL_SIMD {

using namespace body;  // NOLINT: the whole file is built from these functions

namespace {

/// Copies four words from any address by one load and one store.
using words4 = u32 __attribute__((vector_size(16)));
CAROUSEL_FORCE void take4(u32* to, const void* from) {
    words4 v;
    __builtin_memcpy(&v, from, sizeof v);
    *reinterpret_cast<words4*>(to) = v;
}

/// Pixels per step of the loops over rows.
inline constexpr u32 row = 64;

/// Copies `count` elements of a plane's row; the rest is 0.
template <typename Word, typename From>
CAROUSEL_FORCE void take_row(Word (&to)[row], const From* from, u32 count) {
    if (count == row) {
        for (u32 l = 0; l < row; ++l) to[l] = from[l];
        return;
    }
    for (u32 l = 0; l < row; ++l) to[l] = l < count ? from[l] : From{};
}
template <typename Word>
CAROUSEL_FORCE void put_row(Word* to, const Word (&from)[row], u32 count) {
    if (count == row) {
        for (u32 l = 0; l < row; ++l) to[l] = from[l];
        return;
    }
    for (u32 l = 0; l < count; ++l) to[l] = from[l];
}

struct cpu_tables {
    const word_tables* words;
    __attribute__((always_inline)) f32 decode(u32 i) const { return float_of(words->decode[i]); }
    __attribute__((always_inline)) u8 encode(u32 i) const { return words->encode[i]; }
};

// Each of these files uses declarations of this one.
// clang-format off
#include "kernels/cpu/surface_rows.hpp"
#include "kernels/cpu/sample_rows.hpp"
#include "kernels/cpu/light_rows.hpp"
#include "kernels/cpu/post_rows.hpp"
// clang-format on

/// Calls draw(x, y, place of the pixel in the tile, key) for each pixel of the tile that a part covers. A
/// tile has tile_width / scale x tile_height / scale of these pixels.
template <typename Draw>
CAROUSEL_HD_INLINE void each_covered(const fragment_job& job, u32 tile, u32 scale,
                                     const special_triangle& part, const Draw& draw) {
    const i32 columns = static_cast<i32>(tile_width / scale), rows = static_cast<i32>(tile_height / scale);
    const i32 x0 = static_cast<i32>(tile % job.tiles_x) * columns,
              y0 = static_cast<i32>(tile / job.tiles_x) * rows;
    const pixel_test test = make_pixel_test(part.triangle);
    const i32 last_x = min_(part.box.x1, x0 + columns - 1), last_y = min_(part.box.y1, y0 + rows - 1);
    for (i32 y = max_(part.box.y0, y0); y <= last_y; ++y) {
        for (i32 x = max_(part.box.x0, x0); x <= last_x; ++x) {
            const u64 key = key_at(test, static_cast<u32>(x), static_cast<u32>(y), part.id);
            if (key != empty_key)
                draw(static_cast<u32>(x), static_cast<u32>(y),
                     static_cast<u32>(y - y0) * tile_stride + static_cast<u32>(x - x0), key);
        }
    }
}
void masked_tile(const fragment_job& job, u32 tile, u64* keys, const non_opaque_parts& parts) {
    const surface_job& surface = *job.surface;
    // With four samples the mask is that of each sample: a picture of twice the size.
    const shading shade = job.samples == 4 ? doubled(surface.shade) : surface.shade;
    material_source at_sample = surface;
    at_sample.shade = shade;
    for (u32 i = parts.begin[tile]; i < parts.begin[tile + 1]; ++i) {
        const special_triangle& part = parts.parts[parts.places[i]];
        each_covered(
            job, tile, 1, part, [&](u32 x, u32 y, u32 at, u64 key) __attribute__((always_inline)) {
                if (key < keys[at] && passes_mask(at_sample, part.id, centre_x(shade, x), centre_y(shade, y)))
                    keys[at] = key;
            });
    }
}
/// The key of the pixel with the place `at`; of its samples, the farthest one's.
CAROUSEL_FORCE u64 farthest_key(const fragment_job& job, const u64* keys, u32 at) {
    if (job.samples == 1) return keys[at];
    const u64* const from = keys + at / tile_stride * 2 * tile_stride + at % tile_stride * 2;
    return max_(max_(from[0], from[1]), max_(from[tile_stride], from[tile_stride + 1]));
}
void blended_tile(const fragment_job& job, u32 tile, const u64* keys, u64* layers,
                  const non_opaque_parts& parts) {
    const surface_job& surface = *job.surface;
    const u32 count = surface.out.layer_count, scale = job.samples == 4 ? 2 : 1;
    for (u32 i = parts.begin[tile]; i < parts.begin[tile + 1]; ++i) {
        const special_triangle& part = parts.parts[parts.places[i]];
        each_covered(
            job, tile, scale, part, [&](u32 x, u32 y, u32 at, u64 key) __attribute__((always_inline)) {
                if (key < farthest_key(job, keys, at) && key < layers[(count - 1) * tile_keys + at] &&
                    is_visible_layer(surface, part.id, centre_x(surface.shade, x),
                                     centre_y(surface.shade, y)))
                    add_layer(layers + at, tile_keys, count, key);
            });
    }
}
void layers_tile(const fragment_job& job, u32 tile, const u64* layers) {
    const surface_job& surface = *job.surface;
    const u32 scale = job.samples == 4 ? 2 : 1, columns = tile_width / scale, rows = tile_height / scale;
    const u32 x0 = tile % job.tiles_x * columns, y0 = tile / job.tiles_x * rows;
    const u32 x1 = min_(x0 + columns, surface.width), y1 = min_(y0 + rows, surface.height);
    for (u32 y = y0; y < y1; ++y)
        for (u32 x = x0; x < x1; ++x)
            layers_pixel(surface, cpu_tables{job.tables}, layers + (y - y0) * tile_stride + (x - x0),
                         tile_keys, x, y);
}
void taa_rows(const taa_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.a.width; ++x) taa_pixel(p, x, y);
}
void compare_rows(const compare_pass& p, u32* sums, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y) {
        u32 sum = 0, pixels = 0;
        for (u32 x = 0; x < p.width; ++x) {
            const u32 difference = compare_pixel(p, x, y);
            sum += difference;
            pixels += difference != 0 ? 1U : 0U;
        }
        sums[2 * y] = sum;
        sums[2 * y + 1] = pixels;
    }
}
void move_range(const motion_view& m, const move_args& args, u32 begin, u32 end) {
    for (u32 i = begin; i < end; ++i) move_vertex(m, args.pose, args.out, i);
}

}  // namespace

extern const shade_entries looks;
const shade_entries looks{surface_tile,   samples_tile, masked_tile,     blended_tile,  layers_tile,
                          occlusion_rows, light_rows,   bloom_down_rows, bloom_up_rows, meter_rows,
                          tone_rows,      smooth_rows,  taa_rows,        compare_rows,  move_range};

}  // namespace carousel::kernels::cpu::CAROUSEL_SIMD
