#pragma once
// The primitives in kernels: what the worker processes of a row do on a GPU, and their peers in one process.

#include <string>

#include "bench/ipc/workers.hpp"

namespace carousel::bench {

/// Asked of a child, so that this process stays without CUDA.
[[nodiscard]] bool has_gpu();

/// What is written down by kernels, and read behind the round by a child.
struct kernel_sums {
    std::atomic<u64> pushed, popped, wrong;
};

/// Each kernel of a worker pushes and pops in its threads.
[[nodiscard]] worker_loop queue_in_kernels(const std::string& space, kernel_sums& sums);
[[nodiscard]] worker_loop word_in_kernels(const std::string& space);
[[nodiscard]] worker_loop semaphore_in_streams(const std::string& space);

/// One process whose kernels have so many blocks where the others are so many processes: a ring of tickets
/// with cuda::atomic, cuda::counting_semaphore, cuda::atomic::fetch_add.
[[nodiscard]] worker_loop peer_queue(u32 blocks, kernel_sums& sums);
[[nodiscard]] worker_loop peer_semaphore(u32 blocks);
[[nodiscard]] worker_loop peer_word(u32 blocks);

}  // namespace carousel::bench
