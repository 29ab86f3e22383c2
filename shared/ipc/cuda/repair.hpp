#pragma once
// Repairs the words of a space that are in GPU memory. The repair runs in a repair process
// (ipc/gpu_repair.hpp).

#include <cstddef>
#include <vector>

#include "ipc/space_block.hpp"

namespace carousel::ipc {

/// Called after the fences of the clients with the epochs `dead`. Only one repair process may run at a time.
/// May be interrupted and repeated. `gpu` is the address at which this process has mapped the space's GPU
/// memory for its current GPU. Throws device_error.
void repair_gpu_words(const space_block& s, std::byte* gpu, const std::vector<u32>& dead);

}  // namespace carousel::ipc
