#pragma once
// The kernel's launch, as C++ sees it. Of CUDA only the stream's type is needed here.

#include <carousel/cuda.hpp>
#include <carousel/stage.hpp>

/// Enqueues: each pixel's colours become their weighted mean, rounded; alpha stays. Both planes are
/// u8[height][width][4].
void enqueue_mean(cudaStream_t stream, carousel::plane_view<const carousel::u8> in,
                  carousel::plane_view<carousel::u8> out);
