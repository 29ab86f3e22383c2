#pragma once
// The arc tangent in double precision, with the same bits on every device.

#include "kernels/body/fixed_math.hpp"

namespace carousel::kernels::body {

/// The arc tangent of 0 <= x <= 1. Error: at most 3e-16. The rational function is that of atan of the Cephes
/// library (Stephen L. Moshier, https://netlib.org/cephes); tests/kernels/motion_test.cpp measures the error.
[[nodiscard]] CAROUSEL_HD_INLINE f64 arc_tangent(f64 x) {
    const bool above = x > 0.66;
    const f64 y = above ? (x - 1.0) / (x + 1.0) : x;
    const f64 z = y * y;
    const f64 p =
        (((-8.750608600031904122785e-1 * z - 1.615753718733365076637e1) * z - 7.500855792314704667340e1) * z -
         1.228866684490136173410e2) *
            z -
        6.485021904942025371773e1;
    const f64 q =
        ((((z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2) * z + 4.328810604912902668951e2) *
             z +
         4.853903996359136964868e2) *
            z +
        1.945506571482613964425e2;
    const f64 value = y * (z * p / q) + y;
    return above ? value + 3.061616997868382943065e-17 + 7.85398163397448309616e-1 : value;
}

}  // namespace carousel::kernels::body
