// The CPU's inner loops for one instruction set; see cpu/entries.hpp.
#define CAROUSEL_SIMD avx2
#include "kernels/cpu/looks_source.hpp"
