// No include guard on purpose: included once by each cpu/looks_NAME.cpp, which defines CAROUSEL_SIMD (the
// namespace) and is compiled for one instruction set. The rule of cpu/simd_source.hpp applies: only functions
// that are forced inline or local to the namespace may be called.

#include "kernels/body/move.hpp"
#include "kernels/body/other_triangles.hpp"
#include "kernels/cpu/shade_entries.hpp"

namespace carousel::kernels::cpu::CAROUSEL_SIMD {

using namespace body;  // NOLINT: the whole file is built from these functions

namespace {

struct cpu_tables {
    const word_tables* words;
    __attribute__((always_inline)) f32 decode(u32 i) const { return float_of(words->decode[i]); }
    __attribute__((always_inline)) u8 encode(u32 i) const { return words->encode[i]; }
};

void surface_tile(const fragment_job& job, u32 tile, const u64* keys) {
    const surface_job& surface = *job.surface;
    const u32 x0 = tile % job.tiles_x * tile_width, y0 = tile / job.tiles_x * tile_height;
    const u32 x1 = min_(x0 + tile_width, surface.width), y1 = min_(y0 + tile_height, surface.height);
    for (u32 y = y0; y < y1; ++y) {
        for (u32 x = x0; x < x1; ++x)
            surface_pixel(surface, cpu_tables{job.tables}, keys[(y - y0) * tile_stride + (x - x0)], x, y);
    }
}
void masked_tile(const fragment_job& job, u32 tile, u64* keys, const other_parts& parts) {
    const surface_job& surface = *job.surface;
    const i32 x0 = static_cast<i32>(tile % job.tiles_x * tile_width),
              y0 = static_cast<i32>(tile / job.tiles_x * tile_height);
    for (u32 i = parts.begin[tile]; i < parts.begin[tile + 1]; ++i) {
        const special_triangle& part = parts.parts[parts.places[i]];
        const pixel_test test = make_pixel_test(part.triangle);
        const i32 last_x = min_(part.box.x1, x0 + static_cast<i32>(tile_width) - 1),
                  last_y = min_(part.box.y1, y0 + static_cast<i32>(tile_height) - 1);
        for (i32 y = max_(part.box.y0, y0); y <= last_y; ++y) {
            for (i32 x = max_(part.box.x0, x0); x <= last_x; ++x) {
                const u32 column = static_cast<u32>(x), line = static_cast<u32>(y);
                u64& nearest = keys[static_cast<u32>(y - y0) * tile_stride + static_cast<u32>(x - x0)];
                const u64 key = key_at(test, column, line, part.id);
                if (key < nearest && passes_mask(surface, part.id, centre_x(surface.shade, column),
                                                 centre_y(surface.shade, line)))
                    nearest = key;
            }
        }
    }
}
void occlusion_rows(const light_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.a.width; ++x) occlusion_pixel(p, x, y);
}
void light_rows(const light_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.a.width; ++x) light_pixel(p, x, y);
}
void bloom_down_rows(const bloom_down_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.to.width; ++x) bloom_down_pixel(p, x, y);
}
void bloom_up_rows(const bloom_up_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.to.width; ++x) bloom_up_pixel(p, x, y);
}
void tone_rows(const tone_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.from.width; ++x) tone_pixel(p, x, y);
}
void smooth_rows(const smooth_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y)
        for (u32 x = 0; x < p.width; ++x) smooth_pixel(p, x, y);
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
const shade_entries looks{surface_tile,  masked_tile, occlusion_rows, light_rows,   bloom_down_rows,
                          bloom_up_rows, tone_rows,   smooth_rows,    compare_rows, move_range};

}  // namespace carousel::kernels::cpu::CAROUSEL_SIMD
