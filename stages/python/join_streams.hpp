#pragma once
// Orders a frame's completion after the work that a program has enqueued for it, on any stream, so that the
// next reader finds the frame complete. The device enforces the order if the driver can join all streams of a
// context. If that is not possible, this thread waits, which is slower but never gives a torn frame.

#include "stages/python/gil.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {

inline constexpr const char* slower_streams =
    "this driver can't report work on all streams (CUDA 12.5 or newer can): each frame waits for the GPU "
    "before it counts, which is slower";

/// Returns false if this thread has waited, with the GIL released.
inline bool join_or_wait(int gpu, void* stream) {
    if (join_all(gpu, stream)) return true;
    const gil_released others;
    wait_for_all(gpu);
    return false;
}

}  // namespace carousel::python
