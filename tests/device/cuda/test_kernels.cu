#include "tests/device/cuda/test_kernels.hpp"

namespace carousel::test {
namespace {

__device__ u64 global_ns() {
    u64 t = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void hold(const volatile u32* flag, u64 limit_ns) {
    const u64 begin = global_ns();
    while (*flag == 0 && global_ns() - begin < limit_ns) __nanosleep(1000);
}

__global__ void append(u32* diary, u32 value) {
    diary[0] += 1;
    diary[diary[0]] = value;
}

}  // namespace

void launch_hold(cudaStream_t stream, const u32* flag, u64 limit_ns) {
    hold<<<1, 1, 0, stream>>>(flag, limit_ns);
}
void launch_append(cudaStream_t stream, u32* diary, u32 value) { append<<<1, 1, 0, stream>>>(diary, value); }

}  // namespace carousel::test
