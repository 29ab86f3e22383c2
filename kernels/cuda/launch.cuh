#pragma once
// Shared by all launches: the stream of a queue, grid sizes, and the check of a launch.

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <string>

#include "core/errors.hpp"
#include "device/backend.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/overlap.cuh"

namespace carousel::kernels::cuda {

using device::cuda::let_next_begin;
using device::cuda::wait_for_last;

/// For __launch_bounds__(256, resident_blocks(n)): limits registers so that n blocks of 256 threads fit on a
/// multiprocessor. The result is smaller than n if a multiprocessor can never hold n blocks: it holds at most
/// 2048 threads on data centre GPUs, 1536 on the others, 1024 on Turing.
constexpr int resident_blocks(int wanted) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000 || \
    __CUDA_ARCH__ == 1030
    constexpr int most = 8;
#elif __CUDA_ARCH__ < 800
    constexpr int most = 4;
#else
    constexpr int most = 6;
#endif
    return wanted < most ? wanted : most;
}

inline cudaStream_t stream_of(device::queue& q) { return static_cast<cudaStream_t>(q.native_stream()); }

/// Throws cuda_error for any status except success. (No fmt here: nvcc can't compile it.)
inline void check(cudaError_t status, const std::string& what) {
    if (status == cudaSuccess) return;
    throw cuda_error(static_cast<int>(status),
                     what + " on the GPU failed: " + cudaGetErrorName(status) + " (" +
                         cudaGetErrorString(status) +
                         "); a fault of an earlier kernel also shows here: compute-sanitizer finds it");
}
inline void check_launch(const char* kernel) {
    check(cudaPeekAtLastError(), std::string("launch of kernel ") + kernel);
}

/// Returns the number of blocks for `count` items, if a block has `threads` threads and each thread processes
/// `each` items.
inline u32 blocks_for(u64 count, u64 threads, u64 each = 1) {
    const u64 blocks = (count + threads * each - 1) / (threads * each);
    return static_cast<u32>(blocks == 0 ? 1 : (blocks > 0x7fffffffULL ? 0x7fffffffULL : blocks));
}

/// Returns a property of the current device, or `otherwise` if the query fails.
inline u32 property(cudaDeviceAttr which, u32 otherwise) {
    int device = 0, value = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, which, device) != cudaSuccess)
        return otherwise;
    return static_cast<u32>(value);
}
inline u32 multiprocessors() { return property(cudaDevAttrMultiProcessorCount, 64); }

/// True if this kernel may overlap with its predecessor on the current device. This requires that the
/// kernel's code for this device was compiled for overlapping kernels.
template <typename Args>
inline bool may_overlap(void (*kernel)(Args)) {
    bool may = false;
    check(device::cuda::may_overlap(kernel, may), "asking for a kernel's architecture");
    return may;
}

/// launch() launches a kernel in stream order; a kernel launched by launch_after() may overlap with its
/// predecessor. Every kernel of a frame's own work must be launched by one of these two functions, so that
/// the work can run as a graph (device/same_work.hpp).
template <typename... P>
inline void launch(const char* name, void (*kernel)(P...), dim3 blocks, dim3 threads, device::queue& q,
                   const std::type_identity_t<P>&... args) {
    check(device::cuda::launch(q, name, kernel, blocks, threads, 0, false, args...),
          std::string("launch of kernel ") + name);
}

template <typename Args>
inline void launch_after(const char* name, void (*kernel)(Args), dim3 blocks, dim3 threads, device::queue& q,
                         const Args& args) {
    check(device::cuda::launch(q, name, kernel, blocks, threads, 0, may_overlap(kernel), args),
          std::string("launch of kernel ") + name);
}

/// Returns the number of blocks for a grid-stride loop over at most `count` items; it is limited to the
/// number that fills the device.
inline u32 blocks_striding(u64 count, u64 threads, u32 per_multiprocessor) {
    const u32 most = multiprocessors() * per_multiprocessor, needed = blocks_for(count, threads);
    return needed < most ? needed : most;
}

}  // namespace carousel::kernels::cuda
