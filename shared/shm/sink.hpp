#pragma once
// Which stages are sinks: frames leave the run there. A sink may have a ring of its states as its only
// output.

#include "shm/control_block.hpp"

namespace carousel::shm {

/// True if no ring but that of its states leaves the stage.
[[nodiscard]] constexpr bool is_sink(const stage_block& s) noexcept {
    return s.outputs == 0 || (s.outputs == 1 && (s.flags & stage_flag::state) != 0);
}

}  // namespace carousel::shm
