#pragma once
// Processes that a lost GPU keeps from ending (state D). They are revoked and have got SIGKILL, so they run
// no code of theirs any more. A move of the run to other memory (engine/device_switch.hpp) abandons
// them.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// How long a move of stages waits for processes on a failed GPU.
inline constexpr u64 lost_gpu_patience_ns = 2 * ns_per_s;

/// True if the rebuild need not wait for the process any more.
[[nodiscard]] bool may_be_abandoned(const process_table& t, const seat& s, const process& p) noexcept;
/// Forgets the processes that have not ended; they are reaped when they end. Returns true if there are none.
[[nodiscard]] bool abandon_unended(process_table& t);

}  // namespace carousel::supervisor
