#pragma once
// The arithmetic of every kernel, with the same results on every device: IEEE operations are executed in the
// written order and fused only by fma_(), and this file defines every function in which libraries or
// instruction sets differ (NaN and -0 in min/max, float to integer, sine and cosine). Nothing here may be
// replaced by a library call. All functions are forced inline: the CPU kernels are compiled once for each of
// several instruction sets, and these builds must not share a compiled function.

#include "core/host_device.hpp"
#include "core/types.hpp"

namespace carousel::kernels::body {

using carousel::sine_and_cosine;
using carousel::sine_cosine;

/// a * b + c with one rounding.
[[nodiscard]] CAROUSEL_HD_INLINE f32 fma_(f32 a, f32 b, f32 c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

[[nodiscard]] CAROUSEL_HD_INLINE f32 sqrt_(f32 x) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}
[[nodiscard]] CAROUSEL_HD_INLINE f64 sqrt_(f64 x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

/// Returns b if a is NaN.
template <typename T>
[[nodiscard]] CAROUSEL_HD_INLINE T min_(T a, T b) {
    return a < b ? a : b;
}
template <typename T>
[[nodiscard]] CAROUSEL_HD_INLINE T max_(T a, T b) {
    return a > b ? a : b;
}
#if !defined(__CUDA_ARCH__)
/// The number 0 in a form that the compiler cannot treat as a constant (defined in kernels.cpp). With a
/// constant bound, GCC 12 emits two vector instructions per minimum or maximum and eight per clamp; with an
/// unknown bound, it emits one instruction per minimum or maximum.
extern const f32 unknown_zero;
#endif
/// Returns `low` if x is NaN.
[[nodiscard]] CAROUSEL_HD_INLINE f32 clamp_(f32 x, f32 low, f32 high) {
#if defined(__CUDA_ARCH__)
    return fminf(fmaxf(x, low), high);  // each of these two calls is one instruction; if one argument is NaN,
                                        // the call returns the other argument
#else
    return min_(max_(x, low + unknown_zero), high + unknown_zero);
#endif
}
/// max_(x, 0.0F).
[[nodiscard]] CAROUSEL_HD_INLINE f32 positive_(f32 x) {
#if defined(__CUDA_ARCH__)
    return max_(x, 0.0F);
#else
    return max_(x, unknown_zero);
#endif
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 bits_of(f32 x) { return __builtin_bit_cast(u32, x); }
[[nodiscard]] CAROUSEL_HD_INLINE f32 float_of(u32 bits) { return __builtin_bit_cast(f32, bits); }

[[nodiscard]] CAROUSEL_HD_INLINE f32 abs_(f32 x) { return float_of(bits_of(x) & 0x7fffffffU); }

[[nodiscard]] CAROUSEL_HD_INLINE bool is_finite(f32 x) { return (bits_of(x) & 0x7f800000U) != 0x7f800000U; }

/// Rounds towards zero. Values beyond +-2^30 are clamped; for NaN, the lower bound is returned.
[[nodiscard]] CAROUSEL_HD_INLINE i32 to_i32(f32 x) {
    return static_cast<i32>(clamp_(x, -1073741824.0F, 1073741824.0F));
}

/// floor(x) for |x| < 2^30; x must not be NaN.
[[nodiscard]] CAROUSEL_HD_INLINE i32 floor_bounded_i32(f32 x) {
    const i32 i = static_cast<i32>(x);
    return i - (static_cast<f32>(i) > x ? 1 : 0);
}

/// Computes floor(x + 1/2) without rounding that sum; |x| < 2^30; x must not be NaN.
[[nodiscard]] CAROUSEL_HD_INLINE i32 round_bounded_i32(f32 x) {
#if defined(__CUDA_ARCH__)
    const i32 i = __float2int_rd(x);
    return i + (x - static_cast<f32>(i) >= 0.5F ? 1 : 0);
#else
    const i32 i = static_cast<i32>(x);
    const f32 rest = x - static_cast<f32>(i);
    return i + (rest >= 0.5F ? 1 : 0) - (rest < -0.5F ? 1 : 0);
#endif
}

struct vec3 {
    f32 x, y, z;
};
[[nodiscard]] CAROUSEL_HD_INLINE f32 dot(vec3 a, vec3 b) { return fma_(a.x, b.x, fma_(a.y, b.y, a.z * b.z)); }

/// Computes 32 well-mixed bits from a number, for noise and random meshes.
[[nodiscard]] CAROUSEL_HD_INLINE u32 hash_u32(u32 x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

}  // namespace carousel::kernels::body
