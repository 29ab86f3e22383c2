#pragma once
// Marks functions that are compiled for the CPU and, in .cu files, for the GPU as well. Mathematical
// functions are written once, with these marks; all other device-specific code is in folders named cpu/ or
// cuda/.

#if defined(__CUDACC__)
#define CAROUSEL_HD __host__ __device__
#define CAROUSEL_HD_INLINE __host__ __device__ __forceinline__
#else
#define CAROUSEL_HD
#define CAROUSEL_HD_INLINE inline __attribute__((always_inline))
#endif
