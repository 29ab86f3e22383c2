#pragma once
// Sampling of one texture of a material: the border modes of glTF, all four channels, trilinear.

#include "kernels/body/mip.hpp"
#include "kernels/body/shade.hpp"

namespace carousel::kernels::body {

/// Texture coordinates at a pixel, with their changes to the next pixels.
struct moving_pair {
    moving u, v;
};
[[nodiscard]] CAROUSEL_HD_INLINE moving_pair transformed(const moving_pair& at, const f32* m) {
    return {{fma_(m[0], at.u.value, fma_(m[1], at.v.value, m[2])), fma_(m[0], at.u.x, m[1] * at.v.x),
             fma_(m[0], at.u.y, m[1] * at.v.y)},
            {fma_(m[3], at.u.value, fma_(m[4], at.v.value, m[5])), fma_(m[3], at.u.x, m[4] * at.v.x),
             fma_(m[3], at.u.y, m[4] * at.v.y)}};
}

/// As texel_axis(), for a border mode of map_slot::mode. `whole`: the nearest texel alone.
CAROUSEL_HD_INLINE void bordered_axis(f32 u, u32 size, u32 border, bool whole, u32& first, u32& second,
                                      u32& fraction) {
    f32 t = clamp_(u, -4096.0F, 4096.0F);
    if (border == map_clamp) t = clamp_(t, 0.0F, 1.0F);
    if (border == map_mirror) {
        t = t - 2.0F * static_cast<f32>(floor_bounded_i32(t * 0.5F));
        t = t > 1.0F ? 2.0F - t : t;
    }
    if (border == map_repeat) t = t - static_cast<f32>(floor_bounded_i32(t));
    const i32 position = static_cast<i32>(t * static_cast<f32>(size * 256U)) - (whole ? 0 : 128);
    const i32 last = static_cast<i32>(size) - 1, texel = position >> 8;
    fraction = whole ? 0U : static_cast<u32>(position) & 255U;
    const bool around = border == map_repeat;
    first = static_cast<u32>(texel < 0 ? (around ? last : 0) : min_(texel, last));
    second = static_cast<u32>(texel + 1 > last ? (around ? 0 : last) : texel + 1);
}

/// The filtered channels of a texture, each 0..1020.
struct map_texel {
    u32 channel[4];
};
[[nodiscard]] CAROUSEL_HD_INLINE map_texel sample_map_level(const u32* texels, u32 last_texel, u32 begin,
                                                            u32 columns, u32 rows, u32 mode, bool whole,
                                                            f32 u, f32 v) {
    u32 x0, x1, y0, y1, fx, fy;
    bordered_axis(u, columns, mode & 3U, whole, x0, x1, fx);
    bordered_axis(v, rows, mode >> 2 & 3U, whole, y0, y1, fy);
    const u32 t00 = texels[min_(begin + y0 * columns + x0, last_texel)],
              t10 = texels[min_(begin + y0 * columns + x1, last_texel)],
              t01 = texels[min_(begin + y1 * columns + x0, last_texel)],
              t11 = texels[min_(begin + y1 * columns + x1, last_texel)];
    map_texel out{};
    for (u32 k = 0; k < 4; ++k) out.channel[k] = filtered(t00, t10, t01, t11, 8 * k, fx, fy);
    return out;
}
[[nodiscard]] CAROUSEL_HD_INLINE map_texel sample_map(const u32* texels, u32 texel_count,
                                                      const texture_record& t, u32 mode,
                                                      const moving_pair& at) {
    const u32 width = bounded_side(t.width), height = bounded_side(t.height),
              levels = bounded_levels(t.levels);
    const u32 level = mip_level(at.u, at.v, width, height, levels), fine = level >> 8;
    const bool whole = (mode & map_nearest) != 0 && level == 0;
    map_texel out = sample_map_level(texels, texel_count - 1U, t.begin[fine], level_side(width, fine),
                                     level_side(height, fine), mode, whole, at.u.value, at.v.value);
    if ((level & 255U) != 0 && fine + 1 < levels) {
        const map_texel coarse =
            sample_map_level(texels, texel_count - 1U, t.begin[fine + 1], level_side(width, fine + 1),
                             level_side(height, fine + 1), mode, false, at.u.value, at.v.value);
        for (u32 k = 0; k < 4; ++k) out.channel[k] = between(out.channel[k], coarse.channel[k], level & 255U);
    }
    return out;
}

}  // namespace carousel::kernels::body
