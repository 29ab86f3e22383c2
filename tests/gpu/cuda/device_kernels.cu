#include "tests/gpu/device_kernels.hpp"

#include <cuda_runtime.h>

#include "core/errors.hpp"
#include "device/cuda/launch.hpp"

namespace carousel::test {
namespace {

__global__ void make_number(u64* out, const u64* in, u64 frame_number) {
    if (blockIdx.x != 0) return;
    *out = in != nullptr ? *in * 3 + 1 : frame_number * 1000;
}

__global__ void remember(u64* after, const u64* before, u64* out, const u64* in, u64 frame_number,
                         u64 words) {
    const u64 value = in != nullptr ? *in : frame_number * 1000;
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x) {
        const u64 mixed = (before[k] ^ value) * 0x9E37'79B9'7F4A'7C15ULL;
        after[k] = mixed << 29 | mixed >> 35;
        if (k == 0) *out = after[k];
    }
}

__global__ void count_others(u64* out, const u64* after, u64 words) {
    unsigned long long others = 0;
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        others += after[k] != after[0] ? 1 : 0;
    if (others != 0) atomicAdd(reinterpret_cast<unsigned long long*>(out), others);
}

__global__ void fill_words(u64* out, u64 value, u64 elements) {
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < elements; k += gridDim.x * blockDim.x)
        out[k] = value;
}

__global__ void make_squares(u64* number, u64* square, const u64* in, u64 elements) {
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < elements; k += gridDim.x * blockDim.x) {
        number[k] = in[k];
        square[k] = in[k] * in[k];
    }
}

__global__ void begin_compare(pair_seen* seen, const u64* number, const u64* square) {
    *seen = {number[0], square[0], 0};
}

__global__ void compare_rest(pair_seen* seen, const u64* number, const u64* square, u64 elements) {
    unsigned long long differ = 0;
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < elements; k += gridDim.x * blockDim.x)
        differ += (number[k] != number[0]) + (square[k] != square[0]);
    if (differ != 0) atomicAdd_system(reinterpret_cast<unsigned long long*>(&seen->others), differ);
}

__device__ u64 device_ns() {
    u64 now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// No process may see the frame before this is over: its event is recorded after it.
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

void enqueue_number(void* stream, u64* out, const u64* in, u64 frame_number) {
    make_number<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(out, in, frame_number);
}

void launch_number(device::queue& q, u64* out, const u64* in, u64 frame_number, u32 blocks) {
    if (const cudaError_t status =
            device::cuda::launch(q, "make_number", make_number, blocks, 1, 0, false, out, in, frame_number);
        status != cudaSuccess)
        throw cuda_error(static_cast<int>(status), cudaGetErrorString(status));
}

void launch_remember(device::queue& q, u64* after, const u64* before, u64* out, const u64* in,
                     u64 frame_number, u64 words) {
    cudaError_t status = device::cuda::launch(q, "remember", remember, 256, 256, 0, false, after, before, out,
                                              in, frame_number, words);
    if (status == cudaSuccess)
        status = device::cuda::launch(q, "count_others", count_others, 256, 256, 0, false, out,
                                      static_cast<const u64*>(after), words);
    if (status != cudaSuccess) throw cuda_error(static_cast<int>(status), cudaGetErrorString(status));
}

void enqueue_words(void* stream, u64* out, u64 value, u64 elements) {
    fill_words<<<64, 256, 0, static_cast<cudaStream_t>(stream)>>>(out, value, elements);
}

void write_word(u64* at, u64 value) {
    if (const cudaError_t status = cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice);
        status != cudaSuccess)
        throw cuda_error(static_cast<int>(status), cudaGetErrorString(status));
}

void enqueue_squares(void* stream, u64* number, u64* square, const u64* in, u64 elements) {
    make_squares<<<64, 256, 0, static_cast<cudaStream_t>(stream)>>>(number, square, in, elements);
}

void enqueue_compare(void* stream, pair_seen* seen, const u64* number, const u64* square, u64 elements) {
    auto* s = static_cast<cudaStream_t>(stream);
    begin_compare<<<1, 1, 0, s>>>(seen, number, square);
    compare_rest<<<64, 256, 0, s>>>(seen, number, square, elements);
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
