#pragma once
// Sampling of one texture of a material: the border modes of glTF, trilinear. Colours are interpolated in
// linear light, as glTF requires, and numbers (normals, roughness, opacity) as they are stored.

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
    if (border == map_clamp) {
        t = clamp_(t, 0.0F, 1.0F);
    } else if (border == map_mirror) {
        t = t - 2.0F * static_cast<f32>(floor_bounded_i32(t * 0.5F));
        t = t > 1.0F ? 2.0F - t : t;
    } else {  // also the value 3, which only a damaged block has
        t = t - static_cast<f32>(floor_bounded_i32(t));
    }
    const i32 position = static_cast<i32>(t * static_cast<f32>(size * 256U)) - (whole ? 0 : 128);
    const i32 last = static_cast<i32>(size) - 1, texel = position >> 8;
    fraction = whole ? 0U : static_cast<u32>(position) & 255U;
    const bool around = border == map_repeat;
    first = static_cast<u32>(texel < 0 ? (around ? last : 0) : min_(texel, last));
    second = static_cast<u32>(texel + 1 > last ? (around ? 0 : last) : texel + 1);
}

/// The texels of a level around a position, and the 8-bit weights of the second column and row.
struct texel_square {
    u32 t00, t10, t01, t11, fraction_x, fraction_y;
};
[[nodiscard]] CAROUSEL_HD_INLINE texel_square square_at(const u32* texels, u32 last_texel, u32 begin,
                                                        u32 columns, u32 rows, u32 mode, bool whole, f32 u,
                                                        f32 v) {
    u32 x0, x1, y0, y1, fx, fy;
    bordered_axis(u, columns, mode & 3U, whole, x0, x1, fx);
    bordered_axis(v, rows, mode >> 2 & 3U, whole, y0, y1, fy);
    return {texels[min_(begin + y0 * columns + x0, last_texel)],
            texels[min_(begin + y0 * columns + x1, last_texel)],
            texels[min_(begin + y1 * columns + x0, last_texel)],
            texels[min_(begin + y1 * columns + x1, last_texel)],
            fx,
            fy};
}

/// The texels of a texture from which the value of a pixel is interpolated. `coarse` is set if its weight, in
/// steps of 1/256, is not 0.
struct map_texels {
    texel_square fine, coarse;
    u32 coarse_weight;
};
[[nodiscard]] CAROUSEL_HD_INLINE map_texels texels_at(const u32* texels, u32 texel_count,
                                                      const texture_record& t, u32 mode,
                                                      const moving_pair& at) {
    const u32 width = bounded_side(t.width), height = bounded_side(t.height),
              levels = bounded_levels(t.levels);
    const u32 level = mip_level(at.u, at.v, width, height, levels), fine = level >> 8;
    const bool whole = (mode & map_nearest) != 0 && level == 0;
    map_texels out{};
    out.fine = square_at(texels, texel_count - 1U, t.begin[fine], level_side(width, fine),
                         level_side(height, fine), mode, whole, at.u.value, at.v.value);
    if (fine + 1 < levels) out.coarse_weight = level & 255U;
    if (out.coarse_weight != 0)
        out.coarse = square_at(texels, texel_count - 1U, t.begin[fine + 1], level_side(width, fine + 1),
                               level_side(height, fine + 1), mode, false, at.u.value, at.v.value);
    return out;
}

/// A channel of a map of numbers, 0..1020.
[[nodiscard]] CAROUSEL_HD_INLINE u32 number_in(const map_texels& t, u32 channel) {
    const auto of_level = [&](const texel_square& s) {
        return filtered(s.t00, s.t10, s.t01, s.t11, 8 * channel, s.fraction_x, s.fraction_y);
    };
    const u32 fine = of_level(t.fine);
    return t.coarse_weight == 0 ? fine : between(fine, of_level(t.coarse), t.coarse_weight);
}

/// Interpolates with a weight of `second` in steps of 1/256. Equal values remain exactly equal.
[[nodiscard]] CAROUSEL_HD_INLINE f32 mixed(f32 first, f32 second, u32 weight) {
    return fma_(second - first, static_cast<f32>(weight) * (1.0F / 256.0F), first);
}
/// The colour of an sRGB texture, interpolated in linear light. `tables`: as for tinted().
template <typename Tables>
[[nodiscard]] CAROUSEL_HD_INLINE vec3 light_in(const Tables& tables, const map_texels& t) {
    const auto of_channel = [&](u32 shift) {
        const auto of_level = [&](const texel_square& s) {
            const auto linear = [&](u32 texel) { return tables.decode(4U * (texel >> shift & 255U)); };
            return mixed(mixed(linear(s.t00), linear(s.t10), s.fraction_x),
                         mixed(linear(s.t01), linear(s.t11), s.fraction_x), s.fraction_y);
        };
        const f32 fine = of_level(t.fine);
        return t.coarse_weight == 0 ? fine : mixed(fine, of_level(t.coarse), t.coarse_weight);
    };
    return {of_channel(0), of_channel(8), of_channel(16)};
}

}  // namespace carousel::kernels::body
