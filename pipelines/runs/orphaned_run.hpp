#pragma once
// What a dead supervisor has left of a run. Its stages live on; the control block names each process by (pid,
// start time), so that a second supervisor finds them again, and never takes a later process with the same
// pid for one of them. Who may call: whoever holds the run's lock (run_lock.hpp). Nothing here changes
// anything.

#include <string>

#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// A pidfd of the process that has claimed the entry; empty when there is none, or it has ended.
/// A process that died or rests between its claim and the store of its start time is known by what it maps.
[[nodiscard]] shm::unique_fd open_claimer(const shm::incarnation& entry, const std::string& run_id);

/// Living processes of the run that have not been doomed; 0 also when there is no such control block, or one
/// of another version.
[[nodiscard]] u32 living_stages(const std::string& run_id);
/// The same, and standbys, which hold the run's memory as well and can take its seats.
[[nodiscard]] u32 living_processes(const std::string& run_id);

}  // namespace carousel::supervisor
