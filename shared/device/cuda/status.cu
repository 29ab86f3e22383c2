#include "device/cuda/status.hpp"

namespace carousel::device::cuda {
namespace {

// One 16-byte store. The fence before it orders READY behind whatever this thread's stream wrote, for readers
// outside the GPU as well; the one behind it makes the word visible to them before anything that is enqueued
// later.
__global__ void write_status_kernel(uint4* at, uint4 value) {
    __threadfence_system();
    __stwt(at, value);
    __threadfence_system();
}

__global__ void check_status_kernel(const uint4* at, uint4 expected, u32* torn) {
    const uint4 found = __ldcv(at);
    const bool same =
        found.x == expected.x && found.y == expected.y && found.z == expected.z && found.w == expected.w;
    if (!same) atomicAdd_system(torn, 1U);  // host memory: touched only when something is wrong
    __threadfence_system();
}

// The address is an argument: a constant one the compiler may take for unreachable.
__global__ void fault_kernel(u64 address) { *reinterpret_cast<volatile u32*>(address) = 1U; }

uint4 as_vector(status_word word) noexcept {
    return {static_cast<u32>(word.sequence), static_cast<u32>(word.sequence >> 32U), word.epoch, word.state};
}

}  // namespace

cudaError_t launch_write_status(cudaStream_t stream, status_word* at, status_word value) noexcept {
    write_status_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<uint4*>(at), as_vector(value));
    return cudaGetLastError();
}

cudaError_t launch_check_status(cudaStream_t stream, const status_word* at, status_word expected,
                                u32* torn) noexcept {
    check_status_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<const uint4*>(at), as_vector(expected), torn);
    return cudaGetLastError();
}

cudaError_t launch_fault(cudaStream_t stream) noexcept {
    fault_kernel<<<1, 1, 0, stream>>>(0x40);
    return cudaGetLastError();
}

}  // namespace carousel::device::cuda
