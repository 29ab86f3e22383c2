#pragma once
// What every launch shares: the stream of a queue, grid sizes, and the check of a launch.

#include <cuda_runtime.h>

#include <string>

#include "core/errors.hpp"
#include "device/backend.hpp"

namespace carousel::kernels::cuda {

/// For __launch_bounds__(256, resident_blocks(n)): registers are to leave room for n blocks of 256 threads on a multiprocessor, or for
/// as many as there is room for in any case: 2048 threads on the data centre's GPUs, 1536 on the others, 1024 on Turing.
constexpr int resident_blocks(int wanted) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1030
    constexpr int most = 8;
#elif __CUDA_ARCH__ < 800
    constexpr int most = 4;
#else
    constexpr int most = 6;
#endif
    return wanted < most ? wanted : most;
}

inline cudaStream_t stream_of(device::queue& q) { return static_cast<cudaStream_t>(q.native_stream()); }

/// Throws cuda_error for a status other than success. (No fmt here: nvcc can't compile it.)
inline void check(cudaError_t status, const std::string& what) {
    if (status == cudaSuccess) return;
    throw cuda_error(static_cast<int>(status), what + " on the GPU failed: " + cudaGetErrorName(status) + " (" +
                                                   cudaGetErrorString(status) +
                                                   "); a fault of an earlier kernel also shows here: compute-sanitizer finds it");
}
inline void check_launch(const char* kernel) { check(cudaPeekAtLastError(), std::string("launch of kernel ") + kernel); }

/// Blocks of `threads` for `count` items, each thread taking `each`.
inline u32 blocks_for(u64 count, u64 threads, u64 each = 1) {
    const u64 blocks = (count + threads * each - 1) / (threads * each);
    return static_cast<u32>(blocks == 0 ? 1 : (blocks > 0x7fffffffULL ? 0x7fffffffULL : blocks));
}

/// Multiprocessors of the current device.
inline u32 multiprocessors() {
    int device = 0, count = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return 64;
    return static_cast<u32>(count);
}

/// Blocks of a loop that strides over at most `count` items: enough to fill the device, no more.
inline u32 blocks_striding(u64 count, u64 threads, u32 per_multiprocessor) {
    const u32 most = multiprocessors() * per_multiprocessor, needed = blocks_for(count, threads);
    return needed < most ? needed : most;
}

}  // namespace carousel::kernels::cuda
