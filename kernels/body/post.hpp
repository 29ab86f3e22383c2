#pragma once
// From linear light to the picture: the levels of the bloom, tone mapping, and FXAA; and the difference of
// two pictures.

#include "kernels/body/meter.hpp"
#include "kernels/body/srgb.hpp"
#include "kernels/body/tone.hpp"
#include "kernels/looks.hpp"
#include "kernels/mesh_layout.hpp"

namespace carousel::kernels::body {

/// A picture of four floats per pixel.
struct linear_picture {
    f32* data;
    u32 width, height;
};
[[nodiscard]] CAROUSEL_HD_INLINE vec3 linear_at(const linear_picture& p, i32 x, i32 y) {
    const i32 cx = min_(max_(x, 0), static_cast<i32>(p.width) - 1),
              cy = min_(max_(y, 0), static_cast<i32>(p.height) - 1);
    return load_color(p.data + 4 * (static_cast<u64>(cy) * p.width + static_cast<u32>(cx)));
}

/// Half the size: each pixel is the tent 1 3 3 1 over 4 x 4 pixels.
struct bloom_down_pass {
    linear_picture from, to;
    f32 most;  ///< each channel is limited to this value, so that one bright pixel does not flicker
};
[[nodiscard]] CAROUSEL_HD_INLINE vec3 at_most(vec3 c, f32 most) {
    return {min_(c.x, most), min_(c.y, most), min_(c.z, most)};
}
/// The sum; at(column, row) is one of the 4 x 4 pixels. `Color`: as for bilinear().
template <typename Color, typename At>
[[nodiscard]] CAROUSEL_HD_INLINE Color tent(const At& at, f32 most) {
    Color sum{};
    for (u32 row = 0; row < 4; ++row) {
        for (u32 column = 0; column < 4; ++column) {
            const f32 weight =
                (row == 0 || row == 3 ? 0.125F : 0.375F) * (column == 0 || column == 3 ? 0.125F : 0.375F);
            sum = along(sum, at_most(at(column, row), most), weight);
        }
    }
    return sum;
}
CAROUSEL_HD_INLINE void bloom_down_pixel(const bloom_down_pass& p, u32 x, u32 y) {
    const auto at = [&](u32 column, u32 row) __attribute__((always_inline)) {
        return linear_at(p.from, static_cast<i32>(2 * x + column) - 1, static_cast<i32>(2 * y + row) - 1);
    };
    const vec3 sum = tent<vec3>(at, p.most);
    store_color(p.to.data + 4 * (static_cast<u64>(y) * p.to.width + x), sum);
}

/// The value between four pixels of a picture of half the size: weights 3/4 and 1/4 in both directions.
template <typename Color>
[[nodiscard]] CAROUSEL_HD_INLINE Color between_pixels(Color a, Color next, Color below, Color across) {
    return mix(mix(a, next, 0.25F), mix(below, across, 0.25F), 0.25F);
}
/// The row or column next to that of an enlarged pixel.
[[nodiscard]] CAROUSEL_HD_INLINE i32 next_of(u32 x) {
    return static_cast<i32>(x >> 1) + ((x & 1U) != 0 ? 1 : -1);
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 enlarged(const linear_picture& half, u32 x, u32 y) {
    const i32 cx = static_cast<i32>(x >> 1), cy = static_cast<i32>(y >> 1), nx = next_of(x), ny = next_of(y);
    return between_pixels(linear_at(half, cx, cy), linear_at(half, nx, cy), linear_at(half, cx, ny),
                          linear_at(half, nx, ny));
}
/// Mixes a level with the wider one.
struct bloom_up_pass {
    linear_picture wide, to;
    f32 part;
};
CAROUSEL_HD_INLINE void bloom_up_pixel(const bloom_up_pass& p, u32 x, u32 y) {
    const vec3 c =
        mix(linear_at(p.to, static_cast<i32>(x), static_cast<i32>(y)), enlarged(p.wide, x, y), p.part);
    store_color(p.to.data + 4 * (static_cast<u64>(y) * p.to.width + x), c);
}

struct tone_pass {
    linear_picture from, bloom;
    u32* to;
    f32 exposure, part;  ///< of the bloom
    tone_map map;
    const srgb_tables* tables;
    const f32* measured;  ///< meter_args::after, or null
};
[[nodiscard]] CAROUSEL_HD_INLINE f32 exposure_of(const tone_pass& p) {
    return p.measured == nullptr ? p.exposure : p.exposure * p.measured[1];
}
/// The place of a channel in srgb_tables::encode.
[[nodiscard]] CAROUSEL_HD_INLINE u32 code_index(f32 v) {
    return static_cast<u32>(to_i32(fma_(clamp_(v, 0.0F, 1.0F), 4095.0F, 0.5F)));
}
CAROUSEL_HD_INLINE void tone_pixel(const tone_pass& p, const srgb_tables& tables, u32 x, u32 y) {
    vec3 c = linear_at(p.from, static_cast<i32>(x), static_cast<i32>(y));
    if (p.part > 0.0F) c = mix(c, enlarged(p.bloom, x, y), p.part);
    c = tone_mapped(c * exposure_of(p), p.map);
    const auto code = [&](f32 v) { return static_cast<u32>(tables.encode[code_index(v)]); };
    p.to[static_cast<u64>(y) * p.from.width + x] = code(c.x) | code(c.y) << 8 | code(c.z) << 16 | 0xff000000U;
}

/// FXAA (Lottes 2009), the variant with two pairs of taps along the edge, in integers: luma is 0..1020.
struct smooth_pass {
    const u32* from;
    u32* to;
    u32 width, height;
};
[[nodiscard]] CAROUSEL_HD_INLINE u32 color_at(const smooth_pass& p, i32 x, i32 y) {
    const i32 cx = min_(max_(x, 0), static_cast<i32>(p.width) - 1),
              cy = min_(max_(y, 0), static_cast<i32>(p.height) - 1);
    return p.from[static_cast<u64>(cy) * p.width + static_cast<u32>(cx)];
}
[[nodiscard]] CAROUSEL_HD_INLINE i32 luma_of(u32 c) {
    return static_cast<i32>((c & 255U) + 2 * (c >> 8 & 255U) + (c >> 16 & 255U));
}
/// A position in the picture, in pixels, for bilinear filtering with weights of 8 bits.
struct color_place {
    u32 a, b, c, d;  ///< the 2 x 2 pixels around it, limited to the picture
    u32 fx, fy;
};
[[nodiscard]] CAROUSEL_HD_INLINE color_place color_place_of(const smooth_pass& p, f32 x, f32 y) {
    const i32 ix = floor_bounded_i32(x), iy = floor_bounded_i32(y);
    const i32 right = static_cast<i32>(p.width) - 1, bottom = static_cast<i32>(p.height) - 1;
    const u32 x0 = static_cast<u32>(min_(max_(ix, 0), right)),
              x1 = static_cast<u32>(min_(max_(ix + 1, 0), right));
    const u32 y0 = static_cast<u32>(min_(max_(iy, 0), bottom)) * p.width,
              y1 = static_cast<u32>(min_(max_(iy + 1, 0), bottom)) * p.width;
    return {y0 + x0,
            y0 + x1,
            y1 + x0,
            y1 + x1,
            static_cast<u32>(to_i32((x - static_cast<f32>(ix)) * 256.0F)),
            static_cast<u32>(to_i32((y - static_cast<f32>(iy)) * 256.0F))};
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 channel_between(u32 a, u32 b, u32 c, u32 d, u32 fx, u32 fy, u32 shift) {
    const u32 top = (a >> shift & 255U) * (256U - fx) + (b >> shift & 255U) * fx;
    const u32 bottom = (c >> shift & 255U) * (256U - fx) + (d >> shift & 255U) * fx;
    return ((top * (256U - fy) + bottom * fy + 32768U) >> 16) << shift;
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 color_between(u32 a, u32 b, u32 c, u32 d, u32 fx, u32 fy) {
    return 0xff000000U | channel_between(a, b, c, d, fx, fy, 0) | channel_between(a, b, c, d, fx, fy, 8) |
           channel_between(a, b, c, d, fx, fy, 16);
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 mean_color(u32 a, u32 b) {
    return (a & b) + ((a ^ b) >> 1 & 0x7f7f7f7fU);
}
/// The luma of a pixel and its diagonal neighbours.
struct corner_luma {
    i32 m, nw, ne, sw, se;
};
[[nodiscard]] CAROUSEL_HD_INLINE i32 least_luma(const corner_luma& l) {
    return min_(l.m, min_(min_(l.nw, l.ne), min_(l.sw, l.se)));
}
[[nodiscard]] CAROUSEL_HD_INLINE i32 greatest_luma(const corner_luma& l) {
    return max_(l.m, max_(max_(l.nw, l.ne), max_(l.sw, l.se)));
}
[[nodiscard]] CAROUSEL_HD_INLINE bool is_edge(const corner_luma& l) {
    const i32 high = greatest_luma(l);
    return high - least_luma(l) > max_(24, high >> 3);
}
/// A step along the edge, in pixels.
struct edge_step {
    f32 x, y;
};
[[nodiscard]] CAROUSEL_HD_INLINE edge_step edge_step_of(const corner_luma& l) {
    const i32 dx = (l.sw + l.se) - (l.nw + l.ne), dy = (l.nw + l.sw) - (l.ne + l.se);
    const i32 reduce = max_((l.nw + l.ne + l.sw + l.se) >> 5, 8);
    const i32 ax = dx < 0 ? -dx : dx, ay = dy < 0 ? -dy : dy;
    const f32 over = 1.0F / static_cast<f32>(min_(ax, ay) + reduce);
    return {clamp_(static_cast<f32>(dx) * over, -8.0F, 8.0F),
            clamp_(static_cast<f32>(dy) * over, -8.0F, 8.0F)};
}
/// The four taps of a pixel at an edge lie on a line: two near the pixel, two farther away.
[[nodiscard]] CAROUSEL_HD_INLINE color_place edge_tap(const smooth_pass& p, i32 x, i32 y, edge_step s,
                                                      u32 number) {
    const f32 side = number < 2 ? 1.0F / 6.0F : 0.5F, at = (number & 1U) != 0 ? side : -side;
    return color_place_of(p, fma_(s.x, at, static_cast<f32>(x)), fma_(s.y, at, static_cast<f32>(y)));
}
/// The pixel's colour from those of the taps. The farther taps count unless they have left the edge.
[[nodiscard]] CAROUSEL_HD_INLINE u32 edge_color(const corner_luma& l, u32 near0, u32 near1, u32 far0,
                                                u32 far1) {
    const u32 inner = mean_color(near0, near1);
    const u32 outer = mean_color(inner, mean_color(far0, far1));
    const i32 luma = luma_of(outer);
    const u32 beyond = u32{luma < least_luma(l)} | u32{luma > greatest_luma(l)};
    return beyond != 0 ? inner : outer;
}
CAROUSEL_HD_INLINE void smooth_pixel(const smooth_pass& p, u32 x, u32 y) {
    const i32 ix = static_cast<i32>(x), iy = static_cast<i32>(y);
    const u32 here = color_at(p, ix, iy);
    const corner_luma l{luma_of(here), luma_of(color_at(p, ix - 1, iy - 1)),
                        luma_of(color_at(p, ix + 1, iy - 1)), luma_of(color_at(p, ix - 1, iy + 1)),
                        luma_of(color_at(p, ix + 1, iy + 1))};
    u32 out = here;
    if (is_edge(l)) {
        const edge_step step = edge_step_of(l);
        u32 taps[4];
        for (u32 k = 0; k < 4; ++k) {
            const color_place t = edge_tap(p, ix, iy, step, k);
            taps[k] = color_between(p.from[t.a], p.from[t.b], p.from[t.c], p.from[t.d], t.fx, t.fy);
        }
        out = edge_color(l, taps[0], taps[1], taps[2], taps[3]);
    }
    p.to[static_cast<u64>(y) * p.width + x] = out | 0xff000000U;
}

struct compare_pass {
    const u32* a;
    const u32* b;
    u32* color;
    u32 width, gain;
};
/// Returns the sum of the absolute differences of the three colours.
CAROUSEL_HD_INLINE u32 compare_pixel(const compare_pass& p, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * p.width + x;
    const u32 a = p.a[at], b = p.b[at];
    u32 sum = 0, color = 0xff000000U;
    for (u32 shift = 0; shift < 24; shift += 8) {
        const u32 va = a >> shift & 255U, vb = b >> shift & 255U;
        const u32 difference = va > vb ? va - vb : vb - va;
        sum += difference;
        color |= (difference == 0 ? 0U : min_(255U, max_(32U, difference * p.gain))) << shift;
    }
    p.color[at] = color;
    return sum;
}

[[nodiscard]] inline compare_pass make_compare_pass(const compare_args& args) {
    return {reinterpret_cast<const u32*>(args.a), reinterpret_cast<const u32*>(args.b),
            reinterpret_cast<u32*>(args.color), args.width, args.gain};
}

/// The passes of post(), in order. `meter` is done only if its exposure is asked for; `tone` reads what
/// `down` and `up` make only if its part of the bloom is not 0.
struct post_plan {
    meter_pass meter;
    bloom_down_pass down[bloom_levels];
    bloom_up_pass up[bloom_levels - 1];
    tone_pass tone;
    smooth_pass smooth;
};
/// Size of a bloom level, from 0 (half the picture).
[[nodiscard]] inline u32 bloom_side(u32 side, u32 level) { return (side >> (level + 1)) + 1; }
[[nodiscard]] inline post_plan make_post_plan(const post_args& args, const srgb_tables* tables) {
    post_plan p{};
    const u32 width = args.width, height = args.height;
    std::byte* at = args.scratch;
    u32* const mapped = reinterpret_cast<u32*>(at);
    at += align_block(u64{width} * height * 4);
    linear_picture levels[bloom_levels + 1];
    // The kernels only read the input picture.
    levels[0] = {const_cast<f32*>(args.radiance), width, height};
    for (u32 i = 0; i < bloom_levels; ++i) {
        const u32 w = bloom_side(width, i), h = bloom_side(height, i);
        levels[i + 1] = {reinterpret_cast<f32*>(at), w, h};
        at += align_block(u64{w} * h * 16);
        p.down[i] = {levels[i], levels[i + 1], i == 0 ? 24.0F : 65504.0F};
    }
    for (u32 i = 0; i + 1 < bloom_levels; ++i)
        p.up[i] = {levels[bloom_levels - i], levels[bloom_levels - i - 1], 0.55F};
    u32* const color = reinterpret_cast<u32*>(args.color);
    const bool measures = args.meter.before != nullptr;
    p.meter = {args.radiance, reinterpret_cast<i32*>(at), width, height, args.meter};
    p.tone = {levels[0],
              levels[1],
              args.smooth_edges ? mapped : color,
              args.exposure,
              args.bloom,
              static_cast<tone_map>(args.map),
              tables,
              measures ? args.meter.after : nullptr};
    p.smooth = {mapped, color, width, height};
    return p;
}
[[nodiscard]] inline u64 post_bytes(u32 width, u32 height) {
    u64 bytes = align_block(u64{width} * height * 4) + align_block(u64{height} * 4);
    for (u32 i = 0; i < bloom_levels; ++i)
        bytes += align_block(u64{bloom_side(width, i)} * bloom_side(height, i) * 16);
    return bytes;
}

}  // namespace carousel::kernels::body
