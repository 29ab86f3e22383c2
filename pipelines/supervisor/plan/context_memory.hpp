#pragma once
// The GPU memory that each process takes for its context, in addition to rings and its own buffers.

#include "core/types.hpp"

namespace carousel::supervisor {

/// As measured on an H200.
inline constexpr u64 context_bytes = u64{530} << 20U;

}  // namespace carousel::supervisor
