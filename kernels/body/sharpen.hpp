#pragma once
// Unsharp mask of one channel, in integers.

#include "kernels/body/fixed_math.hpp"

namespace carousel::kernels::body {

/// `sum`: the sum of the nine pixels of the 3x3 block around `centre`. Returns centre + strength/256 *
/// (centre - sum/9), rounded, limited to 0..255.
[[nodiscard]] CAROUSEL_HD_INLINE u32 sharpen_channel(i32 centre, i32 sum, i32 strength) {
    const i32 scaled = centre * (9 * 256) + strength * (9 * centre - sum);  // times 2304
    const i32 rounded = (scaled + 1152) / 2304;  // it does not matter how a negative quotient is rounded,
                                                 // because it is clamped to 0
    return static_cast<u32>(max_(0, min_(255, rounded)));
}

/// Returns pixel (x, y) of an RGBA picture; a position beyond the border returns the nearest border pixel.
[[nodiscard]] CAROUSEL_HD_INLINE u32 sharpen_pixel(const u32* in, i32 width, i32 height, i32 x, i32 y,
                                                   i32 strength) {
    i32 sum[3] = {0, 0, 0};
    for (i32 dy = -1; dy <= 1; ++dy) {
        const u32* const line = in + static_cast<i64>(max_(0, min_(height - 1, y + dy))) * width;
        for (i32 dx = -1; dx <= 1; ++dx) {
            const u32 p = line[max_(0, min_(width - 1, x + dx))];
            for (u32 k = 0; k < 3; ++k) sum[k] += static_cast<i32>(p >> (8 * k) & 255U);
        }
    }
    const u32 centre = in[static_cast<i64>(y) * width + x];
    u32 out = centre & 0xff000000U;
    for (u32 k = 0; k < 3; ++k)
        out |= sharpen_channel(static_cast<i32>(centre >> (8 * k) & 255U), sum[k], strength) << (8 * k);
    return out;
}

}  // namespace carousel::kernels::body
