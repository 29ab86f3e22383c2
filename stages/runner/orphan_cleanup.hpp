#pragma once
// Exit of a stage whose supervisor has not been replaced. The last stage that leaves a run saves the data
// known about the run (run/liveness.hpp) and removes everything else: shared memory and runtime directory
// (pictures and dead letters are kept). The last stage is determined under the run's file lock, which a
// supervisor holds until it ends; so no stage cleans up while a supervisor runs, and no two stages clean up
// concurrently. A process that leaves releases its locks on the run (membership.hpp); while another process
// holds such a lock, nothing is removed.

#include <string>

#include "ring/participants.hpp"

namespace carousel::stages {

/// Returns false if another process holds the lock; to be called again later. Returns true if this process
/// may end now, which it must then do immediately. What a crash leaves at each step: an entry that is DOOMED
/// too early (an adopter replaces the stage), or files that the next run of that name or `carousel clean`
/// removes.
[[nodiscard]] bool leave_run(shm::control_block& c, u32 own_entry, const std::string& runtime_directory,
                             const std::string& run_id) noexcept;

}  // namespace carousel::stages
