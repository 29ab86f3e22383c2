#pragma once
// What every launch shares: the stream of a queue, grid sizes, and the check of a launch.

#include <cuda_runtime.h>

#include <string>

#include "core/errors.hpp"
#include "device/backend.hpp"

namespace carousel::kernels::cuda {

/// For __launch_bounds__(256, resident_blocks(n)): registers are to leave room for n blocks of 256 threads on a multiprocessor; Turing's
/// has room for four in any case.
constexpr int resident_blocks(int wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return wanted < 4 ? wanted : 4;
#else
    return wanted;
#endif
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
