#pragma once
// From linear light to the picture: the levels of the bloom, tone mapping, and FXAA; and the difference of
// two pictures.

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
    const f32* const at = p.data + 4 * (static_cast<u64>(cy) * p.width + static_cast<u32>(cx));
    return {at[0], at[1], at[2]};
}

/// Half the size: each pixel is the tent 1 3 3 1 over 4 x 4 pixels.
struct bloom_down_pass {
    linear_picture from, to;
    f32 most;  ///< each channel is limited to this value, so that one bright pixel does not flicker
};
CAROUSEL_HD_INLINE void bloom_down_pixel(const bloom_down_pass& p, u32 x, u32 y) {
    vec3 sum{0.0F, 0.0F, 0.0F};
    for (i32 row = 0; row < 4; ++row) {
        for (i32 column = 0; column < 4; ++column) {
            const vec3 c =
                linear_at(p.from, static_cast<i32>(2 * x) - 1 + column, static_cast<i32>(2 * y) - 1 + row);
            const f32 weight =
                (row == 0 || row == 3 ? 0.125F : 0.375F) * (column == 0 || column == 3 ? 0.125F : 0.375F);
            sum = along(sum, {min_(c.x, p.most), min_(c.y, p.most), min_(c.z, p.most)}, weight);
        }
    }
    f32* const to = p.to.data + 4 * (static_cast<u64>(y) * p.to.width + x);
    to[0] = sum.x, to[1] = sum.y, to[2] = sum.z, to[3] = 1.0F;
}

/// The value between the pixels of a picture of half the size: weights 1/4 and 3/4.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 enlarged(const linear_picture& half, u32 x, u32 y) {
    const i32 cx = static_cast<i32>(x >> 1), cy = static_cast<i32>(y >> 1);
    const i32 nx = cx + ((x & 1U) != 0 ? 1 : -1), ny = cy + ((y & 1U) != 0 ? 1 : -1);
    const vec3 near = mix(linear_at(half, cx, cy), linear_at(half, nx, cy), 0.25F),
               far = mix(linear_at(half, cx, ny), linear_at(half, nx, ny), 0.25F);
    return mix(near, far, 0.25F);
}
/// Mixes a level with the wider one.
struct bloom_up_pass {
    linear_picture wide, to;
    f32 part;
};
CAROUSEL_HD_INLINE void bloom_up_pixel(const bloom_up_pass& p, u32 x, u32 y) {
    const vec3 c =
        mix(linear_at(p.to, static_cast<i32>(x), static_cast<i32>(y)), enlarged(p.wide, x, y), p.part);
    f32* const to = p.to.data + 4 * (static_cast<u64>(y) * p.to.width + x);
    to[0] = c.x, to[1] = c.y, to[2] = c.z;
}

struct tone_pass {
    linear_picture from, bloom;
    u32* to;
    f32 exposure, part;  ///< of the bloom
    tone_map map;
    const srgb_tables* tables;
};
CAROUSEL_HD_INLINE void tone_pixel(const tone_pass& p, u32 x, u32 y) {
    vec3 c = linear_at(p.from, static_cast<i32>(x), static_cast<i32>(y));
    if (p.part > 0.0F) c = mix(c, enlarged(p.bloom, x, y), p.part);
    c = tone_mapped(c * p.exposure, p.map);
    const auto code = [&p](f32 v) {
        return static_cast<u32>(p.tables->encode[to_i32(fma_(clamp_(v, 0.0F, 1.0F), 4095.0F, 0.5F))]);
    };
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
/// The picture at a position in pixels, bilinear with weights of 8 bits.
[[nodiscard]] CAROUSEL_HD_INLINE u32 color_between(const smooth_pass& p, f32 x, f32 y) {
    const i32 ix = floor_bounded_i32(x), iy = floor_bounded_i32(y);
    const u32 fx = static_cast<u32>(to_i32((x - static_cast<f32>(ix)) * 256.0F)),
              fy = static_cast<u32>(to_i32((y - static_cast<f32>(iy)) * 256.0F));
    const u32 a = color_at(p, ix, iy), b = color_at(p, ix + 1, iy), c = color_at(p, ix, iy + 1),
              d = color_at(p, ix + 1, iy + 1);
    u32 out = 0xff000000U;
    for (u32 shift = 0; shift < 24; shift += 8) {
        const u32 top = (a >> shift & 255U) * (256U - fx) + (b >> shift & 255U) * fx;
        const u32 bottom = (c >> shift & 255U) * (256U - fx) + (d >> shift & 255U) * fx;
        out |= ((top * (256U - fy) + bottom * fy + 32768U) >> 16) << shift;
    }
    return out;
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 mean_color(u32 a, u32 b) {
    return (a & b) + ((a ^ b) >> 1 & 0x7f7f7f7fU);
}
CAROUSEL_HD_INLINE void smooth_pixel(const smooth_pass& p, u32 x, u32 y) {
    const i32 ix = static_cast<i32>(x), iy = static_cast<i32>(y);
    const u32 here = color_at(p, ix, iy);
    const i32 nw = luma_of(color_at(p, ix - 1, iy - 1)), ne = luma_of(color_at(p, ix + 1, iy - 1)),
              sw = luma_of(color_at(p, ix - 1, iy + 1)), se = luma_of(color_at(p, ix + 1, iy + 1)),
              m = luma_of(here);
    const i32 low = min_(m, min_(min_(nw, ne), min_(sw, se))),
              high = max_(m, max_(max_(nw, ne), max_(sw, se)));
    u32 out = here;
    if (high - low > max_(24, high >> 3)) {
        const i32 dx = (sw + se) - (nw + ne), dy = (nw + sw) - (ne + se);
        const i32 reduce = max_((nw + ne + sw + se) >> 5, 8);
        const i32 ax = dx < 0 ? -dx : dx, ay = dy < 0 ? -dy : dy;
        const f32 over = 1.0F / static_cast<f32>(min_(ax, ay) + reduce);
        const f32 sx = clamp_(static_cast<f32>(dx) * over, -8.0F, 8.0F),
                  sy = clamp_(static_cast<f32>(dy) * over, -8.0F, 8.0F);
        const f32 fx = static_cast<f32>(x), fy = static_cast<f32>(y);
        const auto tap = [&](f32 t) { return color_between(p, fma_(sx, t, fx), fma_(sy, t, fy)); };
        const u32 inner = mean_color(tap(-1.0F / 6.0F), tap(1.0F / 6.0F));
        const u32 outer = mean_color(inner, mean_color(tap(-0.5F), tap(0.5F)));
        const i32 luma = luma_of(outer);
        out = luma < low || luma > high ? inner : outer;
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

/// The passes of post(), in order: `downs` of `down`, one fewer of `up`, `tone`, `smooth`.
struct post_plan {
    u32 downs;
    bloom_down_pass down[bloom_levels];
    bloom_up_pass up[bloom_levels];
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
    p.downs = args.bloom > 0.0F ? bloom_levels : 0;
    for (u32 i = 0; i < p.downs; ++i) {
        const u32 w = bloom_side(width, i), h = bloom_side(height, i);
        levels[i + 1] = {reinterpret_cast<f32*>(at), w, h};
        at += align_block(u64{w} * h * 16);
        p.down[i] = {levels[i], levels[i + 1], i == 0 ? 24.0F : 65504.0F};
    }
    for (u32 i = 0; i + 1 < p.downs; ++i) p.up[i] = {levels[p.downs - i], levels[p.downs - i - 1], 0.55F};
    u32* const color = reinterpret_cast<u32*>(args.color);
    p.tone = {levels[0],
              levels[p.downs > 0 ? 1 : 0],
              args.smooth_edges ? mapped : color,
              args.exposure,
              args.bloom,
              static_cast<tone_map>(args.map),
              tables};
    p.smooth = {mapped, color, width, height};
    return p;
}
[[nodiscard]] inline u64 post_bytes(u32 width, u32 height) {
    u64 bytes = align_block(u64{width} * height * 4);
    for (u32 i = 0; i < bloom_levels; ++i)
        bytes += align_block(u64{bloom_side(width, i)} * bloom_side(height, i) * 16);
    return bytes;
}

}  // namespace carousel::kernels::body
