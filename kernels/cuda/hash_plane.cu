// The hash of a plane on CUDA. Half a warp processes one block of the hash, with two columns per lane. After
// that a small kernel adds the partial sums of the launch's blocks and writes the eight bytes of the hash.
// Sums are modulo 2^64 and therefore independent of order.
#include "kernels/body/block_hash.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

using namespace body;  // NOLINT: the whole file is built from these functions

constexpr u32 hash_threads = 128, group_lanes = hash_columns / 2, most_parts = 4096, finish_threads = 256;

struct hash_job {
    hash_view in;
    u64* parts;
    u64* out;
    u32 count;      ///< number of parts
    bool as_words;  ///< true if every word lies within one row and is aligned in memory
};

template <bool dense>
__device__ __forceinline__ u64 word_at(const hash_job& a, u64 at) {
    if (dense) return at + 8 <= a.in.bytes() ? *reinterpret_cast<const u64*>(a.in.data + at) : a.in.word(at);
    if (!a.as_words) return a.in.word(at);
    return at < a.in.bytes() ? *reinterpret_cast<const u64*>(a.in.data + at / a.in.row_bytes * a.in.pitch +
                                                             at % a.in.row_bytes)
                             : 0;
}

/// Returns what the two columns of a lane contribute to the sum of block `index`.
template <bool dense>
__device__ __forceinline__ u64 lane_sum(const hash_job& a, u64 index, u32 lane, u64 low_key, u64 high_key) {
    const u64 begin = index * hash_block_bytes + lane * 8;
    u64 low[hash_rows], high[hash_rows];
    if (dense && (index + 1) * hash_block_bytes <= a.in.bytes()) {
        const u64* const words = reinterpret_cast<const u64*>(a.in.data + begin);
#pragma unroll
        for (u32 r = 0; r < hash_rows; ++r)
            low[r] = words[r * hash_columns], high[r] = words[r * hash_columns + group_lanes];
    } else {
        for (u32 r = 0; r < hash_rows; ++r) {
            low[r] = word_at<dense>(a, begin + u64{r} * hash_columns * 8);
            high[r] = word_at<dense>(a, begin + (u64{r} * hash_columns + group_lanes) * 8);
        }
    }
    u64 low_a = 0, high_a = 0;
#pragma unroll
    for (u32 r = 0; r < hash_rows; ++r) {
        low_a = hash_step(low_a, low[r], high[r], low_key + r * hash_golden);
        high_a = hash_step(high_a, high[r], low[r], high_key + r * hash_golden);
    }
    return hash_column(low_a, low_key) + hash_column(high_a, high_key);
}

template <bool dense>
__global__ void __launch_bounds__(hash_threads) hash_blocks(const __grid_constant__ hash_job a) {
    __shared__ unsigned long long part;
    if (threadIdx.x == 0) part = 0;
    let_next_begin();
    __syncthreads();
    const u32 lane = threadIdx.x % group_lanes,
              group = (blockIdx.x * hash_threads + threadIdx.x) / group_lanes;
    const u32 groups = gridDim.x * (hash_threads / group_lanes), mask = 0xffffU << (threadIdx.x & 16U);
    const u64 low_key = hash_key(lane), high_key = hash_key(lane + group_lanes);
    u64 found = 0;
    for (u64 b = group; b < a.in.blocks(); b += groups) {
        unsigned long long sum = lane_sum<dense>(a, b, lane, low_key, high_key);
        for (u32 step = group_lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(mask, sum, step);
        found += hash_block(sum, b);
    }
    if (lane == 0) atomicAdd(&part, static_cast<unsigned long long>(found));
    __syncthreads();
    if (threadIdx.x == 0) a.parts[blockIdx.x] = part;
}

__global__ void __launch_bounds__(finish_threads) hash_finish(const __grid_constant__ hash_job a) {
    __shared__ unsigned long long sum;
    if (threadIdx.x == 0) sum = 0;
    wait_for_last();
    __syncthreads();
    u64 found = 0;
    for (u32 k = threadIdx.x; k < a.count; k += finish_threads) found += a.parts[k];
    atomicAdd(&sum, static_cast<unsigned long long>(found));
    __syncthreads();
    if (threadIdx.x == 0) *a.out = hash_finished(sum, a.in.bytes());
}

}  // namespace

u64 hash_scratch_bytes() noexcept { return u64{most_parts} * sizeof(u64); }

void hash_plane(device::queue& q, const hash_args& args) {
    hash_job a{};
    a.in = {reinterpret_cast<const unsigned char*>(args.data), args.row_bytes, args.rows, args.pitch};
    a.parts = reinterpret_cast<u64*>(args.scratch);
    a.out = args.out;
    const u32 requested = blocks_striding(a.in.blocks() * group_lanes, hash_threads, 16);
    a.count = requested < most_parts ? requested : most_parts;
    const bool aligned = reinterpret_cast<u64>(args.data) % 8 == 0;
    a.as_words = aligned && args.row_bytes % 8 == 0 && args.pitch % 8 == 0;
    if (aligned && a.in.dense()) {
        launch("hash_blocks", hash_blocks<true>, a.count, hash_threads, q, a);
    } else {
        launch("hash_blocks", hash_blocks<false>, a.count, hash_threads, q, a);
    }
    launch_after("hash_finish", hash_finish, dim3(1), dim3(finish_threads), q, a);
}

}  // namespace carousel::kernels::cuda
