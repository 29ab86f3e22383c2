#pragma once
// Named kernel launches on a queue: for a frame's own work, which a runner may run as a graph
// (device/same_work.hpp).

#include <cuda_runtime_api.h>

#include <type_traits>

#include "device/backend.hpp"
#include "device/kernel_launch.hpp"

namespace carousel::device::cuda {

/// Launches on a CUDA queue, or records the launch if a same_work is open on it. Returns the launch's error.
[[nodiscard]] cudaError_t launch(queue& q, const kernel_launch& k) noexcept(false);

/// Launches a kernel with its arguments by value, like <<<>>>.
template <typename... P>
[[nodiscard]] cudaError_t launch(queue& q, const char* name, void (*kernel)(P...), dim3 blocks, dim3 threads,
                                 u32 shared_bytes, bool overlaps,
                                 const std::type_identity_t<P>&... arguments) {
    static_assert(sizeof...(P) <= kernel_launch::most,
                  "a kernel with fewer arguments, or with a struct of them");
    kernel_launch k;
    k.name = name;
    k.kernel = reinterpret_cast<const void*>(kernel);
    k.blocks = {blocks.x, blocks.y, blocks.z};
    k.threads = {threads.x, threads.y, threads.z};
    k.shared_bytes = shared_bytes;
    k.overlaps = overlaps;
    ((k.arguments[k.count++] = {&arguments, static_cast<u32>(sizeof arguments)}), ...);
    return launch(q, k);
}

}  // namespace carousel::device::cuda
