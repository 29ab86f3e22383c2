#pragma once
// Kernels that overlap, by "programmatic dependent launch" (compute capability 9.0 and later; on other GPUs
// these functions do nothing). A kernel that is launched this way may begin before its predecessor in the
// stream has ended. It begins when each block of the predecessor has either called let_next_begin() or ended.
// Before the kernel accesses memory that the predecessor writes or reads, it calls wait_for_last(), which
// returns when the predecessor has ended and its writes are visible. (If a kernel does not call it, a comment
// in the kernel states the reason.) EACH block must call wait_for_last(), even a block without work: if a
// kernel ended without waiting, its successor could begin before its predecessor has ended.

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

/// Sets `may` to true if the kernel's code that runs on the current device was compiled with the two calls
/// above. (If the driver has translated code for an older GPU, that code was compiled without the calls and
/// must not overlap.) The result is cached per device and argument type, because the query takes a
/// microsecond.
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
