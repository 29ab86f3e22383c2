#pragma once
// Marks functions that are compiled for the CPU and, in .cu files, for the GPU as well. Mathematical
// functions are written once, with these marks; all other device-specific code is in folders named cpu/ or
// cuda/.

#include "core/types.hpp"

#if defined(__CUDACC__)
#define CAROUSEL_HD __host__ __device__
#define CAROUSEL_HD_INLINE __host__ __device__ __forceinline__
#else
#define CAROUSEL_HD
#define CAROUSEL_HD_INLINE inline __attribute__((always_inline))
#endif

namespace carousel {

// Sine and cosine with bit-identical results on every machine and device (the results of the C library depend
// on the processor).

struct sine_cosine {
    f64 sine, cosine;
};

/// Sine and cosine for |x| < 2^40, with an error of about 1e-11. The angle is reduced by multiples of pi/2,
/// and the Taylor polynomials are evaluated in double.
[[nodiscard]] CAROUSEL_HD_INLINE sine_cosine sine_and_cosine(f64 x) {
    const f64 quarters = x * 0.63661977236758134308;  // 2 / pi
    const i64 k = static_cast<i64>(quarters + (quarters < 0.0 ? -0.5 : 0.5));
    // pi/2 is represented by two numbers, so that the reduced angle keeps its low bits
    const f64 r =
        (x - static_cast<f64>(k) * 1.57079632673412561417) - static_cast<f64>(k) * 6.07710050650619224932e-11;
    const f64 s = r * r;
    const f64 sine =
        r * (1.0 +
             s * (-1.0 / 6.0 +
                  s * (1.0 / 120.0 + s * (-1.0 / 5040.0 + s * (1.0 / 362880.0 + s * (-1.0 / 39916800.0))))));
    const f64 cosine =
        1.0 + s * (-0.5 + s * (1.0 / 24.0 +
                               s * (-1.0 / 720.0 +
                                    s * (1.0 / 40320.0 + s * (-1.0 / 3628800.0 + s * (1.0 / 479001600.0))))));
    switch (k & 3) {
        case 0:
            return {sine, cosine};
        case 1:
            return {cosine, -sine};
        case 2:
            return {-sine, -cosine};
        default:
            return {-cosine, sine};
    }
}

}  // namespace carousel
