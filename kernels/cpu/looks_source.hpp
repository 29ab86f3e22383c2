// No include guard on purpose: included once by each cpu/looks_NAME.cpp, which defines CAROUSEL_SIMD (the
// namespace) and is compiled for one instruction set. The rule of cpu/simd_source.hpp applies: only functions
// that are forced inline or local to the namespace may be called.

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

}  // namespace

extern const shade_entries looks;
const shade_entries looks{surface_tile,  occlusion_rows, light_rows,  bloom_down_rows,
                          bloom_up_rows, tone_rows,      smooth_rows, compare_rows};

}  // namespace carousel::kernels::cpu::CAROUSEL_SIMD
