#include "bench/ipc/cuda/kernels.hpp"

namespace carousel::bench::gpu {
namespace {

constexpr unsigned blocks = 2048, threads = 256;

__device__ u64 first_of() { return blockIdx.x * u64{blockDim.x} + threadIdx.x; }
__device__ u64 stride() { return u64{gridDim.x} * blockDim.x; }
__device__ u32 word_of(u64 k, u32 seed) { return static_cast<u32>(k * 2654435761ULL) ^ seed; }

__global__ void fill_kernel(u32* at, u64 number, u32 seed) {
    for (u64 k = first_of(); k < number; k += stride()) at[k] = word_of(k, seed);
}
__global__ void wrong_kernel(const u32* at, u64 number, u32 seed, u32* wrong) {
    u32 n = 0;
    for (u64 k = first_of(); k < number; k += stride()) n += at[k] != word_of(k, seed);
    if (n != 0) atomicAdd(wrong, n);
}
__global__ void read_kernel(const uint4* at, u64 number, u32* out) {
    u32 sum = 0;
    for (u64 k = first_of(); k < number; k += stride()) {
        const uint4 v = at[k];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x12345678) *out = sum;
}
__global__ void write_kernel(uint4* at, u64 number, u32 value) {
    for (u64 k = first_of(); k < number; k += stride()) at[k] = make_uint4(value, value, value, value);
}
__global__ void copy_kernel(uint4* to, const uint4* from, u64 number) {
    for (u64 k = first_of(); k < number; k += stride()) to[k] = from[k];
}
__global__ void chase_kernel(const char* at, u32 steps, u32* out) {
    u32 where = 0;
    for (u32 k = 0; k < steps; ++k) where = *reinterpret_cast<const volatile u32*>(at + where);
    *out = where;
}
__device__ u64 now() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
__global__ void tiny_kernel(u32* at, u64* stamps) {
    const u32 k = (*at)++;
    if (stamps != nullptr) stamps[k] = now();
}
__device__ u32 load(const u32* at) {
    u32 v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}
/// Waits for the turn; returns false if `end` is reached first.
__device__ bool take_turn(u32* mine, const u32* theirs, bool first, u32 k, u64 end) {
    while (load(theirs) < (first ? k - 1 : k))
        if (now() > end) return false;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(mine), "r"(k) : "memory");
    return true;
}
__global__ void spin_kernel(u32* mine, const u32* theirs, bool first, u32 turns, u64 nanoseconds, u32* done,
                            u64* stamps) {
    const u64 begin = now(), cycles = clock64();
    for (u32 k = 1; k <= turns; ++k) {
        if (!take_turn(mine, theirs, first, k, begin + nanoseconds)) return;
        stamps[k - 1] = clock64() - cycles;  // finer than globaltimer
        *done = k;
    }
    const f64 ns_each = static_cast<f64>(now() - begin) / static_cast<f64>(clock64() - cycles);
    for (u32 k = 0; k < turns; ++k) stamps[k] = static_cast<u64>(static_cast<f64>(stamps[k]) * ns_each);
}
__global__ void blocks_kernel(u32* words, u32 apart, u32 turns, u64 nanoseconds, u32* done) {
    const u64 end = now() + nanoseconds;
    const u32 mine = blockIdx.x;
    for (u32 k = 1; k <= turns; ++k) {
        if (!take_turn(words + mine * apart, words + (1 - mine) * apart, mine == 0, k, end)) return;
        if (mine == 0) *done = k;
    }
}

}  // namespace

void fill(void* at, u64 bytes, u32 seed, cudaStream_t s) {
    fill_kernel<<<blocks, threads, 0, s>>>(static_cast<u32*>(at), bytes / 4, seed);
}
void count_wrong(const void* at, u64 bytes, u32 seed, u32* wrong, cudaStream_t s) {
    wrong_kernel<<<blocks, threads, 0, s>>>(static_cast<const u32*>(at), bytes / 4, seed, wrong);
}
void read_all(const void* at, u64 bytes, u32* out, cudaStream_t s) {
    read_kernel<<<blocks, threads, 0, s>>>(static_cast<const uint4*>(at), bytes / 16, out);
}
void write_all(void* at, u64 bytes, u32 value, cudaStream_t s) {
    write_kernel<<<blocks, threads, 0, s>>>(static_cast<uint4*>(at), bytes / 16, value);
}
void copy_all(void* to, const void* from, u64 bytes, cudaStream_t s) {
    copy_kernel<<<blocks, threads, 0, s>>>(static_cast<uint4*>(to), static_cast<const uint4*>(from),
                                           bytes / 16);
}
void chase(const void* at, u32 steps, u32* out, cudaStream_t s) {
    chase_kernel<<<1, 1, 0, s>>>(static_cast<const char*>(at), steps, out);
}
void tiny(u32* at, u64* stamps, cudaStream_t s) { tiny_kernel<<<1, 1, 0, s>>>(at, stamps); }
void spin_turns(u32* mine, const u32* theirs, bool first, u32 turns, u32 seconds, u32* done, u64* stamps,
                cudaStream_t s) {
    spin_kernel<<<1, 1, 0, s>>>(mine, theirs, first, turns, u64{seconds} * 1'000'000'000ULL, done, stamps);
}
void blocks_take_turns(u32* words, u32 apart, u32 turns, u32* done, cudaStream_t s) {
    blocks_kernel<<<2, 1, 0, s>>>(words, apart, turns, 5'000'000'000ULL, done);
}

}  // namespace carousel::bench::gpu
