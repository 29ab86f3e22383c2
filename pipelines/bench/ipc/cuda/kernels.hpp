#pragma once
// The kernels of the bench: operations on memory, and the workers of the table of primitives.

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "bench/ipc/workers.hpp"
#include "core/types.hpp"

namespace carousel::bench::gpu {

// The memory operations. All are enqueued on the given stream and return at once; `bytes` is a multiple
// of 16.

void fill(void* at, u64 bytes, u32 seed, cudaStream_t s);
/// Adds to *wrong the number of words that differ from those of fill() with this seed.
void count_wrong(const void* at, u64 bytes, u32 seed, u32* wrong, cudaStream_t s);
/// Reads all bytes. Writes *out only on a condition that is never true; because of this write the compiler
/// can't remove the reads.
void read_all(const void* at, u64 bytes, u32* out, cudaStream_t s);
void write_all(void* at, u64 bytes, u32 value, cudaStream_t s);
void copy_all(void* to, const void* from, u64 bytes, cudaStream_t s);
/// Follows a chain of `steps` offsets: the word at each offset contains the next offset.
void chase(const void* at, u32 steps, u32* out, cudaStream_t s);
/// Increments *at, and stores the GPU's time in ns in stamps[i], where i is the value of *at before the
/// increment; `stamps` may be null.
void tiny(u32* at, u64* stamps, cudaStream_t s);
/// One of two kernels that alternate for `turns` turns each: a kernel polls the word of the other kernel and
/// then writes its own word. The kernel ends after `seconds` at the latest. *done: the number of turns taken;
/// stamps: ns of each turn since the start.
void spin_turns(u32* mine, const u32* theirs, bool first, u32 turns, u32 seconds, u32* done, u64* stamps,
                cudaStream_t s);
/// Two blocks of one kernel alternate as the kernels of spin_turns() do, so a hop crosses no process, stream
/// or kernel boundary. `apart`: distance between the blocks' words, in words; *done: the turns of the first
/// block.
void blocks_take_turns(u32* words, u32 apart, u32 turns, u32* done, cudaStream_t s);

}  // namespace carousel::bench::gpu

namespace carousel::bench {

// The workers of the table of GPU primitives (bench/ipc/workers.hpp). A worker uses, in kernels, the
// primitives of a space with GPU memory, or their counterparts within one process.

enum class kernel_kind : u32 { word, queue, tasks, ring, stream_semaphore, semaphore, pool, allocator };
struct kernel_contender {
    const char *primitive, *by;
    bool processes;  ///< false: a single process is measured, with `number` blocks or with `number` threads
                     ///< that call CUDA
    kernel_kind kind;
    u32 threads = 1;  ///< per block
};
/// `what` of a round is an index into this table.
inline constexpr kernel_contender kernel_contenders[] = {
    {"word, fetch_add", "cuda::atomic", true, kernel_kind::word},
    {"word, fetch_add", "cuda::atomic", false, kernel_kind::word},
    {"queue", "Carousel", true, kernel_kind::queue},
    {"queue", "Carousel", false, kernel_kind::queue},
    {"queue", "a ring of cuda::atomic", false, kernel_kind::ring},
    {"queue, 32 threads each", "Carousel", true, kernel_kind::queue, 32},
    {"queue, 32 threads each", "a ring of cuda::atomic", false, kernel_kind::ring, 32},
    {"work queue", "Carousel", true, kernel_kind::tasks},
    {"work queue", "Carousel", false, kernel_kind::tasks},
    {"work queue", "a ring of cuda::atomic", false, kernel_kind::ring},
    {"work queue, 32 threads each", "Carousel", true, kernel_kind::tasks, 32},
    {"work queue, 32 threads each", "a ring of cuda::atomic", false, kernel_kind::ring, 32},
    {"semaphore, in streams", "Carousel", true, kernel_kind::stream_semaphore},
    {"semaphore", "cuda::counting_semaphore", false, kernel_kind::semaphore},
    {"pool", "Carousel", true, kernel_kind::pool},
    {"pool", "cudaMallocAsync, cudaFreeAsync", false, kernel_kind::allocator},
};
inline constexpr u32 most_kernel_workers = 16;

/// Creates a worker in the calling process, on the first GPU. Throws config_error, device_error.
[[nodiscard]] std::unique_ptr<crew_worker> make_kernel_worker(const std::string& space, u32 worker);

}  // namespace carousel::bench
