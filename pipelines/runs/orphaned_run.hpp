#pragma once
// The parts of a run that a dead supervisor has left. Its stages continue; the control block identifies each
// process by (pid, start time), so that a second supervisor can find them and never mistakes a later process
// with the same pid for one of them. Called by the process that holds the run's lock (run_lock.hpp). All
// functions are read-only.

#include <string>

#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// Returns a pidfd of the process that has claimed the entry; empty if there is none, or it has ended. A
/// process that died or was stopped between its claim and the store of its start time is identified by its
/// mappings.
[[nodiscard]] shm::unique_fd open_claimer(const shm::incarnation& entry, const std::string& run_id);

/// Number of living processes of the run that are not doomed; also returns 0 if there is no such control
/// block, or one of another version.
[[nodiscard]] u32 living_stages(const std::string& run_id);
/// The same plus standbys, which also map the run's memory and can take its seats.
[[nodiscard]] u32 living_processes(const std::string& run_id);

}  // namespace carousel::supervisor
