#pragma once
// Processes that a GPU keeps from ending (state D). They are revoked and have got SIGKILL, so they run no
// code of theirs any more. If the stages of a run can move to the CPU, a rebuild does not wait for them any
// longer than for a while: it abandons them, and the run gets other memory (engine/device_switch.hpp).

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// How long a rebuild waits for processes on a GPU that is known to have failed, and on any other GPU.
inline constexpr u64 failed_gpu_timeout_ns = 2 * ns_per_s, gpu_exit_timeout_ns = 10 * ns_per_s;

/// True if the rebuild need not wait for the process any more.
[[nodiscard]] bool may_be_abandoned(const process_table& t, const process& p) noexcept;
/// True if a process has not ended, or if device work of one may still write: no memory may be kept.
[[nodiscard]] bool has_unended(const process_table& t) noexcept;
/// Forgets the processes that have not ended; they are reaped when they end.
void abandon_unended(process_table& t);

}  // namespace carousel::supervisor
