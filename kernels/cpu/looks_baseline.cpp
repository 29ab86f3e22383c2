// The CPU's inner loops for one instruction set; see cpu/entries.hpp.
#define CAROUSEL_SIMD baseline
#include "kernels/cpu/looks_source.hpp"
