#pragma once
// The kernel's launch function for C++ code. Of CUDA it needs only the type of the stream.

#include <carousel/cuda.hpp>
#include <carousel/stage.hpp>

/// Enqueues the kernel: each pixel's colours become their weighted mean, rounded; alpha is unchanged. Both
/// planes are u8[height][width][4].
void enqueue_mean(cudaStream_t stream, carousel::plane_view<const carousel::u8> in,
                  carousel::plane_view<carousel::u8> out);
