#pragma once
// Kernels that overlap ("programmatic dependent launch", compute capability 9.0 and later; elsewhere these
// functions do nothing). A kernel launched this way may begin before its predecessor in the stream has ended:
// as soon as each block of the predecessor has called let_next_begin() or ended. Before the kernel accesses
// memory that the predecessor writes or reads, it calls wait_for_last(), which returns when the predecessor
// has ended and its writes are visible. (A kernel that does not call it has a comment with the reason.) EACH
// block calls wait_for_last(), even a block without work: if a kernel ended without waiting, its successor
// could overtake its predecessor.

#include <cuda_runtime.h>

#include <array>
#include <atomic>

namespace carousel::device::cuda {

__device__ __forceinline__ void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ __forceinline__ void wait_for_last() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/// Sets `may` if the code of this kernel that runs on the current device was compiled with the two calls
/// above. (Code for an older GPU that the driver has translated for a newer one was compiled without them,
/// and must not overlap.) Queried once per device and argument type, because the driver takes a microsecond
/// to answer.
template <typename Args>
[[nodiscard]] inline cudaError_t may_overlap(void (*kernel)(Args), bool& may) noexcept {
    static std::array<std::atomic<signed char>, 64> known{};  // 0: not queried yet, 1: no, 2: yes
    may = false;
    int device = 0;
    if (const cudaError_t status = cudaGetDevice(&device); status != cudaSuccess) return status;
    if (device < 0 || device >= static_cast<int>(known.size())) return cudaSuccess;
    auto& answer = known[static_cast<std::size_t>(device)];
    if (answer.load(std::memory_order_relaxed) == 0) {
        cudaFuncAttributes attributes{};
        if (const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel); status != cudaSuccess)
            return status;
        answer.store(attributes.ptxVersion >= 90 ? 2 : 1, std::memory_order_relaxed);
    }
    may = answer.load(std::memory_order_relaxed) == 2;
    return cudaSuccess;
}

}  // namespace carousel::device::cuda
