// The CPU's inner loops for one instruction set; see cpu/entries.hpp.
#define CAROUSEL_SIMD avx512
#define CAROUSEL_SIMD_NAME "avx512"
#include "kernels/cpu/simd_source.hpp"
