#pragma once
// The difference of two readings of a counter.

#include "core/types.hpp"

namespace carousel::telemetry {

/// Counters only grow; a value smaller than before belongs to another run, and the difference is then 0.
[[nodiscard]] constexpr u64 grown(u64 now, u64 before) noexcept { return now > before ? now - before : 0; }

}  // namespace carousel::telemetry
