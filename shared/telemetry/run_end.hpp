#pragma once
// For observers: whether a run continues without its supervisor and, if it has ended, its exit code. The
// supervisor records the end in the control block, because observers keep their mapping when the block's name
// and the run's runtime directory are gone: the high half of control_block::supervisor, whose low half is the
// supervisor's pid. 0: not ended; else a mark, the complement of the exit code, and the exit code, so that a
// flipped bit in a run that continues does not read as an end.

#include <optional>

#include "shm/control_block.hpp"

namespace carousel::telemetry {

/// Called only by the supervisor, when the run's exit code is known.
void note_end(shm::control_block& c, int exit_code) noexcept;
/// Returns the run's exit code; empty: the run has not ended, or no supervisor was left to record it.
[[nodiscard]] std::optional<int> end_of(const shm::control_block& c) noexcept;
/// Number of live processes on the run's seats, identified by (pid, start time).
[[nodiscard]] u32 living_stages(const shm::control_block& c) noexcept;
/// True if, of two blocks with the same run id, `present` is a different one: the run has been restarted with
/// new memory.
[[nodiscard]] inline bool is_recreated(const shm::control_block& watched,
                                       const shm::control_block& present) noexcept {
    return watched.created_ns != present.created_ns;
}

}  // namespace carousel::telemetry
