// The CPU's inner loops for one instruction set; see cpu/entries.hpp.
#define CAROUSEL_SIMD baseline
#define CAROUSEL_SIMD_NAME "baseline"
#include "kernels/cpu/simd_source.hpp"
