#pragma once
// The work of a process of the table of primitives in kernels (bench/ipc/crew.hpp): the primitives of a space
// with GPU memory, and their counterparts within one process.

#include <memory>
#include <string>

#include "bench/ipc/crew.hpp"

namespace carousel::bench {

enum class kernel_kind : u32 { word, queue, tasks, ring, stream_semaphore, semaphore, pool, allocator };
struct kernel_contender {
    const char *primitive, *by;
    bool processes;  ///< false: one process with `number` blocks, or with threads that call CUDA
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
