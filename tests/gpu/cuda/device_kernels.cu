#include "tests/gpu/device_kernels.hpp"

#include <cuda_runtime.h>

#include "core/errors.hpp"
#include "device/cuda/launch.hpp"

namespace carousel::test {
namespace {

__global__ void make_number(u64* out, const u64* in, u64 sequence) {
    if (blockIdx.x != 0) return;
    *out = in != nullptr ? *in * 3 + 1 : sequence * 1000;
}

__device__ u64 device_ns() {
    u64 now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Nobody may see the frame before this is over: its event is recorded behind it.
__global__ void hold(u64 ns) {
    const u64 until = device_ns() + ns;
    while (device_ns() < until) __nanosleep(100'000);
}

__global__ void write_to(u64* where) { *reinterpret_cast<volatile u64*>(where) = 1; }
__global__ void trap_now() { asm volatile("trap;"); }
__global__ void never_end(volatile u64* word) {
    while (*word != ~u64{0}) __nanosleep(1000);
}

}  // namespace

void enqueue_number(void* stream, u64* out, const u64* in, u64 sequence) {
    make_number<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(out, in, sequence);
}

void launch_number(device::queue& q, u64* out, const u64* in, u64 sequence, u32 blocks) {
    if (const cudaError_t status =
            device::cuda::launch(q, "make_number", make_number, blocks, 1, 0, false, out, in, sequence);
        status != cudaSuccess)
        throw cuda_error(static_cast<int>(status), cudaGetErrorString(status));
}

void enqueue_hold(void* stream, u64 ns) { hold<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(ns); }

void enqueue_fault(void* stream, device_fault what, u64* word) {
    auto* s = static_cast<cudaStream_t>(stream);
    if (what == device_fault::illegal) write_to<<<1, 1, 0, s>>>(reinterpret_cast<u64*>(0x1000));
    if (what == device_fault::misaligned)
        write_to<<<1, 1, 0, s>>>(reinterpret_cast<u64*>(reinterpret_cast<char*>(word) + 1));
    if (what == device_fault::trap) trap_now<<<1, 1, 0, s>>>();
    if (what == device_fault::endless) never_end<<<1, 1, 0, s>>>(word);
}

const char* take_too_much_memory() {
    void* much = nullptr;
    return cudaGetErrorString(cudaMalloc(&much, u64{1} << 46U));
}

}  // namespace carousel::test
