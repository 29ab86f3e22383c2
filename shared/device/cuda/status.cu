#include "device/cuda/status.hpp"

#include "device/cuda/launch.hpp"
#include "device/cuda/overlap.cuh"

namespace carousel::device::cuda {
namespace {

struct status_args {
    const uint4* at[status_step::most];
    uint4 expected[status_step::most];
    u32 count;
    u32* torn;
    uint4* write;
    uint4 value;
};

// Comparisons come behind all that the stream has done before, as every kernel does. Each store is one of 16
// bytes. The fence before it orders READY behind whatever the stream wrote, for readers outside the GPU as
// well, and behind the comparisons; the one behind it makes the word visible to them before anything that is
// enqueued later. It may be launched while the kernel before it ends, which spares a frame two waits for a
// launch, and waits for its end before it looks or writes.
__global__ void status_kernel(const __grid_constant__ status_args a) {
    wait_for_last();
    for (u32 k = 0; k < a.count; ++k) {
        const uint4 found = __ldcv(a.at[k]);
        const uint4 expected = a.expected[k];
        const bool same =
            found.x == expected.x && found.y == expected.y && found.z == expected.z && found.w == expected.w;
        if (!same) atomicAdd_system(a.torn, 1U);  // host memory: touched only when something is wrong
    }
    __threadfence_system();
    if (a.write == nullptr) return;
    __stwt(a.write, a.value);
    __threadfence_system();
}

// The address is an argument: a constant one the compiler may take for unreachable.
__global__ void fault_kernel(u64 address) { *reinterpret_cast<volatile u32*>(address) = 1U; }

uint4 as_vector(status_word word) noexcept {
    return {static_cast<u32>(word.sequence), static_cast<u32>(word.sequence >> 32U), word.epoch, word.state};
}

}  // namespace

cudaError_t launch_status(device::queue& q, const status_step& step) {
    status_args a{};
    for (u32 k = 0; k < step.count; ++k) {
        a.at[k] = reinterpret_cast<const uint4*>(step.checks[k].at);
        a.expected[k] = as_vector(step.checks[k].expected);
    }
    a.count = step.count;
    a.torn = step.torn;
    a.write = reinterpret_cast<uint4*>(step.write);
    a.value = as_vector(step.value);
    bool overlaps = false;
    if (const cudaError_t said = may_overlap(status_kernel, overlaps); said != cudaSuccess) return said;
    return launch(q, "status", status_kernel, dim3(1), dim3(1), 0, overlaps, a);
}

cudaError_t launch_fault(cudaStream_t stream) noexcept {
    fault_kernel<<<1, 1, 0, stream>>>(0x40);
    return cudaGetLastError();
}

}  // namespace carousel::device::cuda
