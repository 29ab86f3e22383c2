#pragma once
// Which processes belong to a run, when its control block alone can't say: an entry is claimed by one CAS,
// and the claimer's start time is stored behind it. A process that rests or dies in between is known by what
// it maps.

#include <string>

#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::shm {

/// Does the process map the control block of that run?
[[nodiscard]] bool maps_run(i32 pid, const std::string& run_id);
/// A pidfd of the process that an entry names, start time 0: not stored yet. Empty when it has ended, or the
/// pid is somebody else's.
[[nodiscard]] unique_fd open_member(process_id id, const std::string& run_id);

}  // namespace carousel::shm
