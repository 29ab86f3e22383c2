#pragma once
// The memory operations of the bench's kernels. All are enqueued on the given stream and return at once;
// `bytes` is a multiple of 16.

#include <cuda_runtime.h>

#include "core/types.hpp"

namespace carousel::bench::gpu {

void fill(void* at, u64 bytes, u32 seed, cudaStream_t s);
/// Adds to *wrong the number of words that differ from those of fill() with this seed.
void count_wrong(const void* at, u64 bytes, u32 seed, u32* wrong, cudaStream_t s);
/// Reads all bytes; writes *out only in a case that does not occur, so that the compiler keeps the reads.
void read_all(const void* at, u64 bytes, u32* out, cudaStream_t s);
void write_all(void* at, u64 bytes, u32 value, cudaStream_t s);
void copy_all(void* to, const void* from, u64 bytes, cudaStream_t s);
/// Follows `steps` offsets that are stored in the memory.
void chase(const void* at, u32 steps, u32* out, cudaStream_t s);
/// Increments *at. stamps[old value]: the GPU's time in ns; `stamps` may be null.
void tiny(u32* at, u64* stamps, cudaStream_t s);
/// Two of these kernels, each with the other's word, take `turns` turns. Returns early after `seconds`;
/// *done: the number of turns taken; stamps: ns of each turn since the start.
void spin_turns(u32* mine, const u32* theirs, bool first, u32 turns, u32 seconds, u32* done, u64* stamps,
                cudaStream_t s);
/// The same between two blocks of one kernel, whose words are `apart` words apart: no process, stream or
/// kernel boundary is crossed. *done: the turns of the first block.
void blocks_take_turns(u32* words, u32 apart, u32 turns, u32* done, cudaStream_t s);

}  // namespace carousel::bench::gpu
