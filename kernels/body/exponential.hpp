#pragma once
// exp2, log2, exp, log and pow in single precision, with the same bits on every device. The polynomials are
// those of exp2f and log2f of the Cephes library (Stephen L. Moshier, single precision,
// https://netlib.org/cephes); the steps around them use only IEEE operations and fma_().
// tests/kernels/exponential_test.cpp measures the stated errors against the double precision functions of the
// C library.

#include "kernels/body/fixed_math.hpp"

namespace carousel::kernels::body {

/// 2^x. Error: at most 1 unit in the last place if the result is normal, at most 1 subnormal step otherwise.
/// Exact for whole x. Above 128: infinity; below -150: 0; NaN: NaN.
[[nodiscard]] CAROUSEL_HD_INLINE f32 exp2_(f32 x) {
    const f32 bounded = clamp_(x, -152.0F, 129.0F);  // NaN becomes -152 here, and NaN again at the end
    const i32 n = round_bounded_i32(bounded);
    const f32 f = bounded - static_cast<f32>(n);  // exact, -1/2 <= f <= 1/2
    f32 p = 1.535336188319500e-4F;
    p = fma_(p, f, 1.339887440266574e-3F);
    p = fma_(p, f, 9.618437357674640e-3F);
    p = fma_(p, f, 5.550332471162809e-2F);
    p = fma_(p, f, 2.402264791363012e-1F);
    p = fma_(p, f, 6.931472028550421e-1F);
    p = fma_(p, f, 1.0F);
    // Two factors, because 2^n itself may be subnormal or too large; only the second product is rounded.
    const i32 half = n >> 1;
    const f32 first = float_of(static_cast<u32>(half + 127) << 23),
              second = float_of(static_cast<u32>(n - half + 127) << 23);
    // The choice is made between constants: GCC does not vectorise if it can move the work above into one of
    // two alternatives.
    const u32 not_a_number = x == x ? 0U : 0x7fc00000U;
    return float_of(bits_of(p * first * second) | not_a_number);
}

/// log2 x = exponent + mantissa + rest, where the mantissa is x / 2^exponent - 1.
struct binary_logarithm {
    f32 exponent, mantissa, rest;
};
/// Only for finite x > 0.
[[nodiscard]] CAROUSEL_HD_INLINE binary_logarithm split_log2(f32 x) {
    const bool subnormal = x < 1.17549435e-38F;
    const u32 bits = bits_of(subnormal ? x * 8388608.0F : x);
    // The mantissa is taken from [sqrt(1/2), sqrt(2)), so that x near 1 has the exponent 0.
    const u32 shifted = bits - 0x3f3504f3U;
    const i32 exponent = (static_cast<i32>(shifted) >> 23) - (subnormal ? 23 : 0);
    const f32 m = float_of((shifted & 0x007fffffU) + 0x3f3504f3U) - 1.0F;
    const f32 square = m * m;
    f32 p = 7.0376836292e-2F;
    p = fma_(p, m, -1.1514610310e-1F);
    p = fma_(p, m, 1.1676998740e-1F);
    p = fma_(p, m, -1.2420140846e-1F);
    p = fma_(p, m, 1.4249322787e-1F);
    p = fma_(p, m, -1.6668057665e-1F);
    p = fma_(p, m, 2.0000714765e-1F);
    p = fma_(p, m, -2.4999993993e-1F);
    p = fma_(p, m, 3.3333331174e-1F);
    const f32 y = fma_(-0.5F, square, m * (square * p));  // ln(1 + m) - m
    // log2(e) = 1 + 0.44269504...: the summand m is added without a rounded factor
    constexpr f32 log2e_minus_1 = 0.44269504088896340736F;
    return {static_cast<f32>(exponent), m, fma_(m, log2e_minus_1, fma_(y, log2e_minus_1, y))};
}

/// log2 x. Error: at most 2 units in the last place. Exact for powers of two. 0: -infinity; below 0: NaN;
/// infinity: infinity.
[[nodiscard]] CAROUSEL_HD_INLINE f32 log2_(f32 x) {
    const binary_logarithm l = split_log2(x);
    const f32 value = l.exponent + (l.mantissa + l.rest);
    const f32 infinity = float_of(0x7f800000U);
    if (!(x > 0.0F)) return x == 0.0F ? -infinity : float_of(0x7fc00000U);
    return x < infinity ? value : infinity;
}

/// e^x. Error: at most 2 units in the last place if the result is normal. The product of x and log2(e) is
/// kept in two floats.
[[nodiscard]] CAROUSEL_HD_INLINE f32 exp_(f32 x) {
    constexpr f32 log2e = 1.44269504F, log2e_low = 1.92596303e-8F;
    const f32 bounded = x == x ? clamp_(x, -110.0F, 90.0F) : x;
    const f32 product = bounded * log2e;
    const f32 low = fma_(bounded, log2e, -product) + bounded * log2e_low;
    const f32 power = exp2_(product);
    return power < 3.0e38F ? fma_(power, low * 0.693147181F, power) : power;
}

/// ln x: log2 x times ln 2. Error: at most 3 units in the last place. Special cases as log2_().
[[nodiscard]] CAROUSEL_HD_INLINE f32 log_(f32 x) { return log2_(x) * 0.693147181F; }

/// x^y from the logarithm of x, for finite x > 0 and finite y.
[[nodiscard]] CAROUSEL_HD_INLINE f32 pow_of(const binary_logarithm& l, f32 y) {
    const f32 high = l.exponent + l.mantissa;
    const f32 low =
        (l.exponent - high) + l.mantissa + l.rest;  // Fast2Sum (Dekker): |exponent| > |mantissa| or 0
    const f32 product = y * high;
    const f32 rest = fma_(y, high, -product) + y * low;
    const f32 sum = product + rest;
    const f32 power = exp2_(sum);
    const f32 left = (product - sum) + rest;
    const u32 finite = u32{is_finite(power)} & u32{is_finite(left)};
    return finite != 0 ? fma_(power, left * 0.693147181F, power) : power;
}
/// x^y for x >= 0. Relative error: at most 2^-21 (1 + |y log2 x| / 8) if the result is normal. x^0 = 1 for
/// every x; 0^y = 0 for y > 0 and infinity for y < 0; NaN for x < 0.
[[nodiscard]] CAROUSEL_HD_INLINE f32 pow_(f32 x, f32 y) {
    if (y == 0.0F) return 1.0F;
    if (!(x > 0.0F) || !is_finite(x)) return exp2_(y * log2_(x));
    return pow_of(split_log2(x), y);
}
/// pow_() for finite x >= 0 and finite y > 0, without branches: for loops over vectors.
[[nodiscard]] CAROUSEL_HD_INLINE f32 bounded_pow(f32 x, f32 y) {
    const f32 power = pow_of(split_log2(x), y);
    return x > 0.0F ? power : 0.0F;
}

}  // namespace carousel::kernels::body
