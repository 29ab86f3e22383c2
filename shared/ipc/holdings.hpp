#pragma once
// Determines the owners of a primitive's parts from its words, for space_view.hpp.

#include <map>
#include <vector>

#include "ipc/space_view.hpp"

namespace carousel::ipc {

[[nodiscard]] bool is_ready(const space_block& s, u32 place);
/// Returns the bytes of the arena that are available for further primitives.
[[nodiscard]] u64 free_bytes(const space_block& s);
/// The same for the GPU memory.
[[nodiscard]] u64 gpu_free_bytes(const space_block& s);
/// Describes the primitive at that place; adds the holdings of each epoch to `of_epoch`.
[[nodiscard]] primitive_view gather(space_block& s, u32 place, std::map<u32, std::vector<holding>>& of_epoch);

}  // namespace carousel::ipc
