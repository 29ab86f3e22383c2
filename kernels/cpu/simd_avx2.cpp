// The CPU's inner loops for one instruction set; see cpu/entries.hpp.
#define CAROUSEL_SIMD avx2
#define CAROUSEL_SIMD_NAME "avx2"
#include "kernels/cpu/simd_source.hpp"
