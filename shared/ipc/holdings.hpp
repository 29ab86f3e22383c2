#pragma once
// Who has what of a primitive, read from its words: for space_view.hpp.

#include <map>
#include <vector>

#include "ipc/space_view.hpp"

namespace carousel::ipc {

[[nodiscard]] bool is_ready(const space_block& s, u32 place);
/// Of the arena: what further primitives can have.
[[nodiscard]] u64 free_bytes(const space_block& s);
/// The same of the GPU memory.
[[nodiscard]] u64 gpu_free_bytes(const space_block& s);
/// The primitive at that place; adds to each epoch what it holds.
[[nodiscard]] primitive_view gather(space_block& s, u32 place, std::map<u32, std::vector<holding>>& of_epoch);

}  // namespace carousel::ipc
