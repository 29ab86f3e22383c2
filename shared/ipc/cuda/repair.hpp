#pragma once
// Mends the words of a space that lie in GPU memory: what a mender (ipc/gpu_repair.hpp) is for.

#include <cstddef>
#include <vector>

#include "ipc/space_block.hpp"

namespace carousel::ipc {

/// Behind the fences of those lives, by the only mender that there is. May be cut off and repeated. `gpu`:
/// the space's GPU memory in this process, on its current GPU. Throws device_error.
void repair_gpu_words(const space_block& s, std::byte* gpu, const std::vector<u32>& dead);

}  // namespace carousel::ipc
