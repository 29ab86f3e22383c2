#pragma once
// The processes of gpu_kills.cpp, and the final check of their leftovers.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "gpu_book.cuh"
#include "ipc/space_block.hpp"

namespace carousel::test {

inline constexpr u32 queue_elements = 96, work_attempts = 4;
inline constexpr u64 pool_bytes = u64{24} << 20U;

#if defined(__CUDACC__)
inline void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "a client ends: %s\n", cudaGetErrorName(status));
    std::_Exit(9);
}
#endif

struct client_words {
    std::string space, book;
    u64 story = 0, seed = 1;
    u32 step = ~0U;  ///< to die at
    u32 number = 0;  ///< of this client
    int device = 0;
};
/// Until it is killed.
[[noreturn]] void client_main(const client_words& w);

struct final_check {
    std::unique_ptr<gpu_story> story;
    u32 room[3] = {};  ///< of each queue: what could be pushed into the empty one
    u64 lost[2] = {}, tombs[2] = {}, left = 0;
    u64 pool_bytes = 0, pool_free = 0;
    u32 free_permits = 0, waiting = 0;
    f64 repair_us = 0;  ///< that a repair of the words takes in a process that already has its context
};
/// Empties the queues first. `block`: of that space, as this process has it.
final_check check_at_end(const std::string& space, u64 story_offset, const ipc::space_block& block);
/// GPUs that a process sees, of which the first two reach each other; 1 where they don't.
int number_of_gpus();

}  // namespace carousel::test
