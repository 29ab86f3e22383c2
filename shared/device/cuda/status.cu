#include "device/cuda/status.hpp"

#include "device/canary.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/overlap.cuh"

namespace carousel::device::cuda {
namespace {

struct status_args {
    const uint4* at[status_step::most_checks];
    uint4 expected[status_step::most_checks];
    u32 count;
    u32* torn;
    uint4* write[status_step::most];
    u32 writes;
    uint4 value;
};

struct canary_args {
    ulonglong2* at;
    u64 key;
    canary_check* found;
};
struct plant_args {
    canary_args canary[most_canaries];
};
struct guarded_args {
    status_args status;
    canary_args canary[most_canaries];
};
// One warp checks one part. Each thread loads several pairs of words at once, so the check takes one memory
// round trip, which is concurrent with the round trip of the status words.
constexpr u32 lanes = 32, pairs_a_lane = canary_part_words / 2 / lanes, parts_a_block = 4;
constexpr u32 canary_threads = lanes * parts_a_block, canary_blocks = canary_parts / parts_a_block;
static_assert(pairs_a_lane * 2 * lanes == canary_part_words && canary_parts % parts_a_block == 0);

// The comparisons come after all previous work of the stream, as in every kernel. Each store writes 16 bytes.
// The fence before the store orders READY after the comparisons and after all earlier writes of the stream,
// also for readers outside the GPU. The fence after the store makes the word visible to these readers before
// any work that is enqueued later. The kernel may be launched while its predecessor is still running, which
// saves two launch latencies per frame; it waits for the end of the predecessor before it reads or writes.
//
// The kernel loads its arguments into registers before it waits, because the first access to them goes to
// memory.
__device__ void status_words(const status_args& a) {
    constexpr u32 most = status_step::most, most_checks = status_step::most_checks;
    const uint4* at[most_checks];
    uint4 expected[most_checks], *write[most], value = a.value;
    u32 *torn = a.torn, count = a.count, writes = a.writes;
#pragma unroll
    for (u32 k = 0; k < most; ++k) {
        write[k] = a.write[k];
        asm volatile("" : "+l"(write[k]));
    }
#pragma unroll
    for (u32 k = 0; k < most_checks; ++k) {
        at[k] = a.at[k], expected[k] = a.expected[k];
        asm volatile("" : "+l"(at[k]));
        asm volatile("" : "+r"(expected[k].x), "+r"(expected[k].y), "+r"(expected[k].z), "+r"(expected[k].w));
    }
    asm volatile("" : "+l"(torn), "+r"(count), "+r"(writes));
    asm volatile("" : "+r"(value.x), "+r"(value.y), "+r"(value.z), "+r"(value.w));
    wait_for_last();
#pragma unroll
    for (u32 k = 0; k < most_checks; ++k) {
        if (k >= count) break;
        const uint4 found = __ldcv(at[k]);
        const bool same = found.x == expected[k].x && found.y == expected[k].y && found.z == expected[k].z &&
                          found.w == expected[k].w;
        if (!same) atomicAdd_system(torn, 1U);  // host memory: accessed only on a mismatch
    }
    __threadfence_system();
    if (writes == 0) return;
#pragma unroll
    for (u32 k = 0; k < most; ++k)
        if (k < writes && write[k] != nullptr) __stwt(write[k], value);
    __threadfence_system();
}

__global__ void status_kernel(const __grid_constant__ status_args a) { status_words(a); }

__device__ ulonglong2 canary_pair(u64 key, u32 k) {
    return make_ulonglong2(canary_word(key, 2 * k), canary_word(key, 2 * k + 1));
}

// One thread's share of a canary. `block` is the index of the thread's block among the blocks of all
// canaries.
struct canary_share {
    const canary_args& canary;
    u32 part, first;  ///< pairs first, first + lanes, ...

    __device__ canary_share(const canary_args* all, u32 block)
        : canary(all[block / canary_blocks]),
          part(block % canary_blocks * parts_a_block + threadIdx.x / lanes),
          first(part * (canary_part_words / 2) + threadIdx.x % lanes) {}
    __device__ void expect(ulonglong2 (&pairs)[pairs_a_lane]) const {
#pragma unroll
        for (u32 j = 0; j < pairs_a_lane; ++j) pairs[j] = canary_pair(canary.key, first + j * lanes);
    }
};

// The first block handles the status words; each of the other blocks handles some parts of a canary. The
// blocks may run in any order, because READY only means that the payload is written. The result of a check is
// stored in host memory, which the host reads when the event is complete.
__global__ void __launch_bounds__(canary_threads)
    guarded_status_kernel(const __grid_constant__ guarded_args a) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) status_words(a.status);
        return;
    }
    const canary_share mine(a.canary, blockIdx.x - 1);
    ulonglong2 expected[pairs_a_lane], found[pairs_a_lane];
    mine.expect(expected);
    const ulonglong2* const at = mine.canary.at + mine.first;
    wait_for_last();
#pragma unroll
    for (u32 j = 0; j < pairs_a_lane; ++j) found[j] = __ldcv(at + j * lanes);
    u32 damaged = canary_bytes;
#pragma unroll
    for (u32 j = 0; j < pairs_a_lane; ++j) {
        const bool low = found[j].x != expected[j].x;
        if (!low && found[j].y == expected[j].y) continue;
        const u32 byte = low ? first_changed_byte(found[j].x, expected[j].x)
                             : 8 + first_changed_byte(found[j].y, expected[j].y);
        damaged = min(damaged, 16 * (mine.first + j * lanes) + byte);
    }
    if (!__any_sync(~0U, damaged != canary_bytes)) return;
    for (u32 apart = lanes / 2; apart > 0; apart /= 2)
        damaged = min(damaged, __shfl_xor_sync(~0U, damaged, apart));
    if (threadIdx.x % lanes == 0)
        *static_cast<volatile u32*>(&mine.canary.found->part[mine.part]) = canary_damaged + damaged;
}

__global__ void __launch_bounds__(canary_threads) plant_kernel(const __grid_constant__ plant_args a) {
    const canary_share mine(a.canary, blockIdx.x);
    ulonglong2 pattern[pairs_a_lane];
    mine.expect(pattern);
    wait_for_last();
#pragma unroll
    for (u32 j = 0; j < pairs_a_lane; ++j) __stcg(mine.canary.at + mine.first + j * lanes, pattern[j]);
}

// The address is an argument, because the compiler may treat a store to a constant invalid address as
// unreachable code.
__global__ void fault_kernel(u64 address) { *reinterpret_cast<volatile u32*>(address) = 1U; }

uint4 as_vector(status_word word) noexcept {
    return {static_cast<u32>(word.ring_sequence), static_cast<u32>(word.ring_sequence >> 32U), word.epoch,
            word.state};
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

void note(std::span<const canary_step> canaries, canary_args* at) noexcept {
    for (const canary_step& c : canaries) *at++ = {reinterpret_cast<ulonglong2*>(c.at), c.key, c.found};
}

template <typename Args>
cudaError_t launch_early(device::queue& q, const char* name, void (*kernel)(Args), u32 blocks, u32 threads,
                         const Args& a) {
    bool overlaps = false;
    if (const cudaError_t status = may_overlap(kernel, overlaps); status != cudaSuccess) return status;
    return launch(q, name, kernel, dim3(blocks), dim3(threads), 0, overlaps, a);
}

}  // namespace

cudaError_t launch_status(device::queue& q, const status_step& step) {
    return launch_early(q, "status", status_kernel, 1, 1, arguments_of(step));
}

cudaError_t launch_guarded(device::queue& q, const status_step& step, std::span<const canary_step> canaries) {
    guarded_args a{arguments_of(step), {}};
    note(canaries, a.canary);
    return launch_early(q, "status and canaries", guarded_status_kernel,
                        1 + static_cast<u32>(canaries.size()) * canary_blocks, canary_threads, a);
}

cudaError_t launch_plant(device::queue& q, std::span<const canary_step> canaries) {
    plant_args a{};
    note(canaries, a.canary);
    return launch_early(q, "plant canaries", plant_kernel, static_cast<u32>(canaries.size()) * canary_blocks,
                        canary_threads, a);
}

cudaError_t launch_fault(cudaStream_t stream) noexcept {
    fault_kernel<<<1, 1, 0, stream>>>(0x40);
    return cudaGetLastError();
}

}  // namespace carousel::device::cuda
