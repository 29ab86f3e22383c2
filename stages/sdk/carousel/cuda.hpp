#pragma once
// Work of a stage that runs on a GPU: its stream, and CUDA errors as Carousel exceptions. Needs the CUDA
// Toolkit's headers.
//
//   my_kernel<<<grid, block, 0, carousel::cuda::stream(f)>>>(f.input().plane<const u8>("color"),
//                                                             f.output().plane<u8>("color"));
//   carousel::cuda::check_launch("my_kernel");
//
// Rules: enqueue only on this stream and don't wait for it, because the runner records the frame's event
// after the last kernel. Allocate in prepare(): cudaMalloc and cudaFree wait for the whole device.

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include <carousel/stage.hpp>
#include "device/cuda/launch.hpp"

namespace carousel::cuda {

/// Returns the stream of a queue. Throws config_error if the stage runs on the CPU (description::device
/// states where it can run).
inline cudaStream_t stream(device::queue& q) {
    if (q.kind() != device_kind::cuda)
        throw config_error(
            "this stage enqueues kernels, but it runs on the CPU: set device = \"cuda:0\", and runs_on::cuda "
            "in configure()");
    return static_cast<cudaStream_t>(q.native_stream());
}
/// Returns the stream on which the frame's work is enqueued.
inline cudaStream_t stream(frame& f) { return stream(f.queue()); }
/// Returns the stage's stream for the set-up work in prepare().
inline cudaStream_t stream(environment& env) { return stream(env.queue()); }

/// Throws cuda_error unless `status` is cudaSuccess; `what` is the call's name for the message.
inline void check(cudaError_t status, std::string_view what) {
    if (status == cudaSuccess) return;
    throw cuda_error(static_cast<int>(status), std::string(what) + ": " + cudaGetErrorName(status) + " (" +
                                                   cudaGetErrorString(status) + ")");
}
/// Throws cuda_error if the preceding launch failed (an empty grid, too much shared memory, no code for this
/// GPU).
inline void check_launch(std::string_view kernel) { check(cudaGetLastError(), kernel); }

/// Launches a kernel on the frame's stream and checks the launch; `name` is for messages. A stage that sets
/// description::same_work may launch only through this function. carousel::cuda::launch(f, "my_kernel",
/// my_kernel, grid, block, in, out);
template <typename... P>
void launch(frame& f, const char* name, void (*kernel)(P...), dim3 blocks, dim3 threads,
            const std::type_identity_t<P>&... arguments) {
    (void)stream(f);
    check(device::cuda::launch(f.queue(), name, kernel, blocks, threads, 0, false, arguments...), name);
}

}  // namespace carousel::cuda
