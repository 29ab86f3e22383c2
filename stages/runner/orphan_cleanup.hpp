#pragma once
// The end of a stage that no supervisor has come back for. The last one of a run to leave removes what the
// run has left: shared memory and run folder (pictures stay). Who is the last is decided under the run's file
// lock, the one that a supervisor holds for life: so nobody cleans up under a supervisor, and no two stages
// at once.

#include <string>

#include "ring/participants.hpp"

namespace carousel::stages {

/// False: somebody holds the lock; look again. True: this process may end now, at once.
/// What a crash leaves at each step: an entry that is DOOMED too early (an adopter replaces the stage), or
/// files that the next run of that name or `carousel clean` removes.
[[nodiscard]] bool leave_run(shm::control_block& c, u32 own_entry, const std::string& run_directory,
                             const std::string& run_id) noexcept;

}  // namespace carousel::stages
