#pragma once
// Repairs the words of a space that are in GPU memory: the work of a repair process (ipc/gpu_repair.hpp).

#include <cstddef>
#include <vector>

#include "ipc/space_block.hpp"

namespace carousel::ipc {

/// Called after the fences of those clients, by the only repair process. May be interrupted and repeated.
/// `gpu`: the space's GPU memory in this process, on its current GPU. Throws device_error.
void repair_gpu_words(const space_block& s, std::byte* gpu, const std::vector<u32>& dead);

}  // namespace carousel::ipc
