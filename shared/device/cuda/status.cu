#include "device/cuda/status.hpp"

#include "device/canary.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/overlap.cuh"

namespace carousel::device::cuda {
namespace {

struct status_args {
    const uint4* at[status_step::most];
    uint4 expected[status_step::most];
    u32 count;
    u32* torn;
    uint4* write[status_step::most];
    u32 writes;
    uint4 value;
};

struct canary_args {
    ulonglong2* at;
    u64 key;
    canary_look* found;
    bool plant;
};
struct guarded_args {
    status_args status;
    canary_args canary[most_canaries];
};
// A thread has several pairs of words, all on their way at once: one way to memory and back, beside that of
// the status words.
constexpr u32 canary_each = 4, canary_threads = canary_part_words / 2 / canary_each;
static_assert(canary_threads <= 1024);

// Comparisons come behind all that the stream has done before, as every kernel does. Each store is one of 16
// bytes. The fence before it orders READY behind whatever the stream wrote, for readers outside the GPU as
// well, and behind the comparisons; the one behind it makes the word visible to them before anything that is
// enqueued later. It may be launched while the kernel before it ends, which spares a frame two waits for a
// launch, and waits for its end before it looks or writes.
__device__ void status_words(const status_args& a) {
    for (u32 k = 0; k < a.count; ++k) {
        const uint4 found = __ldcv(a.at[k]);
        const uint4 expected = a.expected[k];
        const bool same =
            found.x == expected.x && found.y == expected.y && found.z == expected.z && found.w == expected.w;
        if (!same) atomicAdd_system(a.torn, 1U);  // host memory: touched only when something is wrong
    }
    __threadfence_system();
    if (a.writes == 0) return;
    for (u32 k = 0; k < a.writes; ++k)
        if (a.write[k] != nullptr) __stwt(a.write[k], a.value);
    __threadfence_system();
}

__global__ void status_kernel(const __grid_constant__ status_args a) {
    wait_for_last();
    status_words(a);
}

__device__ ulonglong2 canary_pair(u64 key, u32 k) {
    return make_ulonglong2(canary_word(key, 2 * k), canary_word(key, 2 * k + 1));
}

__device__ void look(const canary_args& c, u32 part, u32 k) {
    __shared__ u32 first;
    ulonglong2 found[canary_each];
#pragma unroll
    for (u32 j = 0; j < canary_each; ++j) found[j] = __ldcv(c.at + k + j * canary_threads);
    bool same = true;
#pragma unroll
    for (u32 j = 0; j < canary_each; ++j) {
        const ulonglong2 expected = canary_pair(c.key, k + j * canary_threads);
        same = same && found[j].x == expected.x && found[j].y == expected.y;
    }
    if (!__syncthreads_or(!same)) return;
    if (threadIdx.x == 0) first = canary_bytes;
    __syncthreads();
    for (u32 j = 0; j < canary_each; ++j) {
        const ulonglong2 expected = canary_pair(c.key, k + j * canary_threads);
        const bool low = found[j].x != expected.x;
        if (!low && found[j].y == expected.y) continue;
        const u32 byte =
            low ? first_changed_byte(found[j].x, expected.x) : 8 + first_changed_byte(found[j].y, expected.y);
        atomicMin(&first, 16 * (k + j * canary_threads) + byte);
    }
    __syncthreads();
    if (threadIdx.x == 0) *static_cast<volatile u32*>(&c.found->part[part]) = canary_damaged + first;
}

// The first block does the words, each of the others a part of a canary: in no order to each other, for
// nobody takes READY as more than that the payload is written. What a look says is host memory, which the
// host reads behind the event.
__global__ void __launch_bounds__(canary_threads)
    guarded_status_kernel(const __grid_constant__ guarded_args a) {
    wait_for_last();
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) status_words(a.status);
        return;
    }
    const u32 part = (blockIdx.x - 1) % canary_parts;
    const canary_args& c = a.canary[(blockIdx.x - 1) / canary_parts];
    const u32 k = part * (canary_part_words / 2) + threadIdx.x;
    if (!c.plant) return look(c, part, k);
    for (u32 j = 0; j < canary_each; ++j)
        __stcg(c.at + k + j * canary_threads, canary_pair(c.key, k + j * canary_threads));
}

// The address is an argument: a constant one the compiler may take for unreachable.
__global__ void fault_kernel(u64 address) { *reinterpret_cast<volatile u32*>(address) = 1U; }

uint4 as_vector(status_word word) noexcept {
    return {static_cast<u32>(word.sequence), static_cast<u32>(word.sequence >> 32U), word.epoch, word.state};
}

status_args arguments_of(const status_step& step) noexcept {
    status_args a{};
    for (u32 k = 0; k < step.count; ++k) {
        a.at[k] = reinterpret_cast<const uint4*>(step.checks[k].at);
        a.expected[k] = as_vector(step.checks[k].expected);
    }
    a.count = step.count;
    a.torn = step.torn;
    for (u32 k = 0; k < step.writes; ++k) a.write[k] = reinterpret_cast<uint4*>(step.write[k]);
    a.writes = step.writes;
    a.value = as_vector(step.value);
    return a;
}

}  // namespace

cudaError_t launch_guarded(device::queue& q, const status_step& step, std::span<const canary_step> canaries) {
    guarded_args a{arguments_of(step), {}};
    for (std::size_t k = 0; k < canaries.size(); ++k)
        a.canary[k] = {reinterpret_cast<ulonglong2*>(canaries[k].at), canaries[k].key, canaries[k].found,
                       canaries[k].plant};
    bool overlaps = false;
    if (const cudaError_t said = may_overlap(guarded_status_kernel, overlaps); said != cudaSuccess)
        return said;
    return launch(q, "status and canaries", guarded_status_kernel,
                  dim3(1 + static_cast<u32>(canaries.size()) * canary_parts), dim3(canary_threads), 0,
                  overlaps, a);
}

cudaError_t launch_status(device::queue& q, const status_step& step) {
    const status_args a = arguments_of(step);
    bool overlaps = false;
    if (const cudaError_t said = may_overlap(status_kernel, overlaps); said != cudaSuccess) return said;
    return launch(q, "status", status_kernel, dim3(1), dim3(1), 0, overlaps, a);
}

cudaError_t launch_fault(cudaStream_t stream) noexcept {
    fault_kernel<<<1, 1, 0, stream>>>(0x40);
    return cudaGetLastError();
}

}  // namespace carousel::device::cuda
