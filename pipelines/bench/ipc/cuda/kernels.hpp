#pragma once
// What the bench's kernels do with memory. All are enqueued on the stream given and return at once; `bytes`
// is a multiple of 16.

#include <cuda_runtime.h>

#include "core/types.hpp"

namespace carousel::bench::gpu {

void fill(void* at, u64 bytes, u32 seed, cudaStream_t s);
/// Adds to *wrong the words that fill() with this seed has not written.
void count_wrong(const void* at, u64 bytes, u32 seed, u32* wrong, cudaStream_t s);
/// *out is written in a case that doesn't come, so that the reading stays.
void read_all(const void* at, u64 bytes, u32* out, cudaStream_t s);
void write_all(void* at, u64 bytes, u32 value, cudaStream_t s);
void copy_all(void* to, const void* from, u64 bytes, cudaStream_t s);
/// So many steps along offsets that lie in the memory.
void chase(const void* at, u32 steps, u32* out, cudaStream_t s);
/// ++*at. stamps[what it was]: the GPU's time in ns; null: none is taken.
void tiny(u32* at, u64* stamps, cudaStream_t s);
/// Two of these, with each other's words, take so many turns. Gives up at `seconds`; *done: the turns that
/// it had; stamps: the ns of each since the first.
void spin_turns(u32* mine, const u32* theirs, bool first, u32 turns, u32 seconds, u32* done, u64* stamps,
                cudaStream_t s);
/// The same between two blocks of one kernel, whose words lie `apart` words from each other: no process,
/// stream or kernel is crossed. *done: the turns of the first.
void blocks_take_turns(u32* words, u32 apart, u32 turns, u32* done, cudaStream_t s);

}  // namespace carousel::bench::gpu
