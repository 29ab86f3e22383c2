#pragma once
// How a run lives, for those who watch it: does it go on without its supervisor, and if it has ended, how?
// The supervisor's last word lies in the control block, because watchers keep their mapping when its name and
// the run's runtime directory are gone: the high half of control_block::supervisor, whose low half is the
// supervisor's pid. 0: not ended; else a mark, the complement of the exit code, and the exit code: a flipped
// bit of a run that continues is not an end.

#include <optional>

#include "shm/control_block.hpp"

namespace carousel::telemetry {

/// By the supervisor alone, when the run's exit code is known.
void note_end(shm::control_block& c, int exit_code) noexcept;
/// The run's exit code; nothing: it has not ended, or nobody was left to say so.
[[nodiscard]] std::optional<int> end_of(const shm::control_block& c) noexcept;
/// Processes that sit in the run and live, by (pid, start time).
[[nodiscard]] u32 living_stages(const shm::control_block& c) noexcept;
/// Between two blocks of one run id: the run has begun again with memory made anew.
[[nodiscard]] inline bool is_recreated(const shm::control_block& watched,
                                       const shm::control_block& present) noexcept {
    return watched.created_ns != present.created_ns;
}

}  // namespace carousel::telemetry
