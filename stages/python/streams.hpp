#pragma once
// The order of a frame's work on a GPU, whatever streams a framework enqueues it on. Built from
// cuda/streams.cpp, or from no_streams.cpp where there is no CUDA.
//
// `gpu` is the one that the streams are of, as this process counts them. It is this thread's current one
// during a call, and the one that was current is so again behind it: the program may work on another one.

#include "core/types.hpp"

namespace carousel::python {

/// The GPU that this thread is on, as this process counts them; -1: none.
[[nodiscard]] int current_gpu();
/// The GPU that a stream is of; where the driver doesn't say, the current one. Throws cuda_error.
[[nodiscard]] int gpu_of(void* stream);
/// What is enqueued on `follower` from here on waits for what is on `leader` by now; on the device, not here.
/// Streams are cudaStream_t, or 1 and 2 for the default ones. Throws cuda_error.
void follow(int gpu, void* follower, void* leader);
/// What is enqueued on `stream` from here on waits for all that this process has enqueued by now, on every
/// stream of its context. Nothing here waits. False: the driver, older than 12.5, can't tell of that, nothing
/// is joined, and wait_for_all() has to take its place. Throws cuda_error.
[[nodiscard]] bool join_all(int gpu, void* stream);
/// Waits here until all that this process has enqueued on that GPU is done. Throws cuda_error.
void wait_for_all(int gpu);
/// Copies device memory to host memory behind what is on `stream`, and waits for it. Throws cuda_error.
void copy_to_host(int gpu, void* to, const void* from, u64 bytes, void* stream);
/// Enqueues a copy within the device. Throws cuda_error.
void copy_on_device(int gpu, void* to, const void* from, u64 bytes, void* stream);

}  // namespace carousel::python
