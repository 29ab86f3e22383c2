#pragma once
// The kernel's launch function for C++ code. Needs only the type of the stream from CUDA.

#include <carousel/cuda.hpp>
#include <carousel/stage.hpp>

/// Enqueues the kernel: each pixel's colours are replaced by their weighted mean, rounded; alpha is
/// unchanged. Both planes are u8[height][width][4].
void enqueue_mean(cudaStream_t stream, carousel::plane_view<const carousel::u8> in,
                  carousel::plane_view<carousel::u8> out);
