#pragma once
// Behind what a program has enqueued for a frame, on whatever stream: the frame is complete to whoever looks
// at it next. The device sees to the order where the driver can tell of all streams of a context. Where it
// can't this thread waits: slower, and never a torn frame.

#include "stages/python/gil.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {

inline constexpr const char* slower_streams =
    "this driver can't tell of work on all streams (CUDA 12.5 can): each frame waits for the GPU before it "
    "counts, which is slower";

/// False: it has waited. The GIL is others' meanwhile.
inline bool join_or_wait(int gpu, void* stream) {
    if (join_all(gpu, stream)) return true;
    const gil_released others;
    wait_for_all(gpu);
    return false;
}

}  // namespace carousel::python
