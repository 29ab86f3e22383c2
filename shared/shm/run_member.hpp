#pragma once
// Determines whether a process belongs to a run if the control block alone does not show it: an entry is
// claimed by one CAS, and the claimer's start time is stored after it. A process that pauses or dies between
// these two steps is identified by its memory mappings.

#include <string>

#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::shm {

/// Returns whether the process maps a file whose path contains `name`.
[[nodiscard]] bool maps_file(i32 pid, const std::string& name);
/// Returns whether the process maps the control block of that run.
[[nodiscard]] bool maps_run(i32 pid, const std::string& run_id);
/// Returns a pidfd of the process that an entry names; start time 0 means that it is not stored yet. Empty if
/// the process has ended or the pid belongs to a process outside the run.
[[nodiscard]] unique_fd open_member(process_id id, const std::string& run_id);

}  // namespace carousel::shm
