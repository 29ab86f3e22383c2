#pragma once
// Functions that order a frame's work on a GPU, whatever streams a framework uses for this work. Built from
// cuda/streams.cpp, or from no_streams.cpp without CUDA.
// `gpu` is the GPU of the streams, numbered as in this process. A call makes this GPU the thread's current
// GPU and restores the previous one afterwards, because the program may work on another GPU.

#include "core/types.hpp"
#include "stages/python/gil.hpp"

namespace carousel::python {

/// Returns this thread's current GPU, numbered as in this process; -1: the thread has none.
[[nodiscard]] int current_gpu();
/// Returns the GPU of a stream; the current GPU if the driver can't report it. Throws cuda_error.
[[nodiscard]] int gpu_of(void* stream);
/// Work enqueued on `follower` after this call waits for the work that is now on `leader`; the wait is on the
/// device, and this call does not block. Streams are values of type cudaStream_t, or 1 and 2 for the default
/// streams. Throws cuda_error.
void follow(int gpu, void* follower, void* leader);
/// Work enqueued on `stream` after this call waits for all work that this process has enqueued so far, on
/// every stream of its context. Does not block. Returns false if the driver, older than 12.5, does not
/// support this; in that case nothing is joined, and the caller must use wait_for_all() instead. Throws
/// cuda_error.
[[nodiscard]] bool join_all(int gpu, void* stream);
/// Blocks until all work that this process has enqueued on that GPU is done. Throws cuda_error.
void wait_for_all(int gpu);
/// Copies device memory to host memory after the work on `stream`, and waits for it. Throws cuda_error.
void copy_to_host(int gpu, void* to, const void* from, u64 bytes, void* stream);
/// Enqueues a copy within the device. Throws cuda_error.
void copy_on_device(int gpu, void* to, const void* from, u64 bytes, void* stream);

// Orders a frame's completion after the work that a program has enqueued for it, on any stream, so that the
// next reader finds the frame complete. The device enforces the order if the driver can join all streams of a
// context. If the device cannot enforce it, this thread waits, which is slower but also never gives a torn
// frame.

inline constexpr const char* slower_streams =
    "this driver can't report work on all streams (CUDA 12.5 or newer can), so each frame counts only after "
    "this process has waited for the GPU, which is slower";

/// Returns false if this thread has waited, with the GIL released.
inline bool join_or_wait(int gpu, void* stream) {
    if (join_all(gpu, stream)) return true;
    const gil_released others;
    wait_for_all(gpu);
    return false;
}

}  // namespace carousel::python
