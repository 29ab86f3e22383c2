#pragma once
// The two sides of a hop from kernel to kernel. Both sides run the same code, whether they are two threads of
// one process or two processes.

#include <cuda_runtime.h>

#include <atomic>

#include "core/types.hpp"

namespace carousel::bench::gpu {

enum means : u32 { host_word, event_polled, event_waited, wait_value, spin, all_means };
inline constexpr const char* means_names[] = {"word on the CPU, after a sync", "IPC event, polled",
                                              "IPC event, stream waits", "value, stream waits",
                                              "a kernel spins"};

/// Largest number of turns per measurement.
inline constexpr u32 most_hops = 512;

/// State shared by both sides.
struct hop_board {
    std::atomic<u32> ready, failed;
    std::atomic<u32> submitted[2];  // number of this side's enqueued kernels, one per round trip (for
                                    // host_word: number of its completed kernels)
    cudaIpcEventHandle_t events[2];
    cudaIpcMemHandle_t words;
    f64 us[all_means], p95_us[all_means];
    u32 turns[all_means];
    std::atomic<u32> wrong[all_means];  // number of sides (0 to 2) on which the count of executed kernels was
                                        // wrong
    char why[200];
};

/// Runs one side in one of two processes; each process has its own context. The first process owns the words.
/// Throws cuda_error, shm_error.
void process_side(hop_board& b, u32 number, int device, bool slices, bool quick);
/// Runs both sides as threads of this process, as the reference measurement without a process boundary.
void thread_sides(hop_board& b, bool quick);

}  // namespace carousel::bench::gpu
