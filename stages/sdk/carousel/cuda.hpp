#pragma once
// Work of a stage that runs on a GPU: its stream, and CUDA's answers as Carousel's errors. Needs the CUDA
// Toolkit's headers.
//
//   my_kernel<<<grid, block, 0, carousel::cuda::stream(f)>>>(f.input().plane<const u8>("color"),
//   f.output().plane<u8>("color")); carousel::cuda::check_launch("my_kernel");
//
// Rules: enqueue on this stream alone, and don't wait for it: the runner records the frame's event behind the
// last kernel. Allocate in prepare(): cudaMalloc and cudaFree wait for the whole device.

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include <carousel/stage.hpp>
#include "device/cuda/launch.hpp"

namespace carousel::cuda {

/// The stream of a queue. Throws config_error when the stage runs on the CPU (description::device says where
/// it can).
inline cudaStream_t stream(device::queue& q) {
    if (q.kind() != device_kind::cuda)
        throw config_error(
            "this stage enqueues kernels, but it runs on the CPU: give it device = \"cuda:0\", and say "
            "runs_on::cuda in configure()");
    return static_cast<cudaStream_t>(q.native_stream());
}
/// The stream that the frame's work is enqueued on.
inline cudaStream_t stream(frame& f) { return stream(f.queue()); }
/// The same stream, for set-up in prepare().
inline cudaStream_t stream(environment& env) { return stream(env.queue()); }

/// Throws cuda_error unless `status` is cudaSuccess; `what` names the call.
inline void check(cudaError_t status, std::string_view what) {
    if (status == cudaSuccess) return;
    throw cuda_error(static_cast<int>(status), std::string(what) + ": " + cudaGetErrorName(status) + " (" +
                                                   cudaGetErrorString(status) + ")");
}
/// Throws cuda_error when the launch right before has failed (a grid of no blocks, too much shared memory, no
/// code for this GPU).
inline void check_launch(std::string_view kernel) { check(cudaGetLastError(), kernel); }

/// Launches a kernel on the frame's stream and checks it; `name` is for messages. The only way to launch for
/// a stage that says description::same_work.
///   carousel::cuda::launch(f, "my_kernel", my_kernel, grid, block, in, out);
template <typename... P>
void launch(frame& f, const char* name, void (*kernel)(P...), dim3 blocks, dim3 threads,
            const std::type_identity_t<P>&... arguments) {
    (void)stream(f);
    check(device::cuda::launch(f.queue(), name, kernel, blocks, threads, 0, false, arguments...), name);
}

}  // namespace carousel::cuda
