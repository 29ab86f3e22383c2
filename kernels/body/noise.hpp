#pragma once
// The height field of the fractal terrain: an island of value noise, in double, without library functions.

#include "kernels/body/fixed_math.hpp"

namespace carousel::kernels::body {

[[nodiscard]] CAROUSEL_HD_INLINE f64 lerp_(f64 a, f64 b, f64 t) { return a + (b - a) * t; }
[[nodiscard]] CAROUSEL_HD_INLINE f64 unit_(f64 x) { return x < 0.0 ? 0.0 : (x > 1.0 ? 1.0 : x); }
/// 0 below `from`, 1 above `to`, smooth between them (also for from > to).
[[nodiscard]] CAROUSEL_HD_INLINE f64 smooth_(f64 from, f64 to, f64 x) {
    const f64 t = unit_((x - from) / (to - from));
    return t * t * (3.0 - 2.0 * t);
}

/// Value noise in 0..1 with lattice spacing 1, quintic between the lattice points.
[[nodiscard]] CAROUSEL_HD_INLINE f64 lattice_noise(f64 x, f64 y, u32 seed) {
    const f64 sx = x + 65536.0, sy = y + 65536.0;  // positive, so that truncation is floor
    const u32 ix = static_cast<u32>(sx), iy = static_cast<u32>(sy);
    const f64 fx = sx - ix, fy = sy - iy;
    const f64 u = fx * fx * fx * (fx * (fx * 6.0 - 15.0) + 10.0),
              v = fy * fy * fy * (fy * (fy * 6.0 - 15.0) + 10.0);
    f64 corner[4];
    for (u32 i = 0; i < 4; ++i)
        corner[i] =
            hash_u32((ix + (i & 1U)) * 0x9e3779b9U + hash_u32(iy + (i >> 1) + seed)) * (1.0 / 4294967296.0);
    return lerp_(lerp_(corner[0], corner[1], u), lerp_(corner[2], corner[3], u), v);
}

/// Height above the sea, about -0.15 .. 1, on a disc of radius 1.
[[nodiscard]] CAROUSEL_HD_INLINE f64 island_height(f64 x, f64 z) {
    f64 ridges = 0.0, hills = 0.0, amplitude = 0.5, frequency = 2.1;
    for (u32 octave = 0; octave < 8; ++octave) {
        const f64 n = lattice_noise(x * frequency, z * frequency, octave * 977U + 11U);
        const f64 centred = 2.0 * n - 1.0;
        const f64 ridge = 1.0 - (centred < 0.0 ? -centred : centred);
        ridges += amplitude * ridge * ridge;
        hills += amplitude * n;
        amplitude *= 0.47;
        frequency *= 2.03;
    }
    const f64 distance = sqrt_(x * x + z * z);
    const f64 shore = smooth_(1.02, 0.25, distance + 0.25 * (hills - 0.5));
    return shore * (0.25 * hills + 0.85 * ridges * ridges * smooth_(0.05, 0.75, shore)) * 1.15 - 0.085;
}

}  // namespace carousel::kernels::body
