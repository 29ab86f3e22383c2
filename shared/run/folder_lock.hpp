#pragma once
// FOLDER/lock of a run shows whether its processes live, in every pid, time and mount namespace that sees the
// folder:
//   the supervisor holds it with flock(), exclusively and for life (pipelines/runs/run_lock.hpp). So does,
//   for a
//     moment, a process that removes what a dead run has left;
//   each stage holds a shared lock on it (shm/file_lock.hpp, independent of flock()), also without a
//   supervisor; a port's program holds the flock() of a file of its own, FOLDER/port-SEAT-EPOCH.lock.
// The control block has such locks, too (shm/segment.hpp), but a container may have a /dev/shm of its own.

#include <string>

#include "shm/fd_socket.hpp"

namespace carousel::run {

[[nodiscard]] std::string folder_lock(const std::string& folder);

/// True if a process holds the folder's exclusive lock, or if that can't be determined. Takes and releases a
/// shared flock(): a process that tries for the exclusive one in this moment has to try again.
[[nodiscard]] bool has_supervisor(const std::string& folder);
/// True if a stage or a port's program holds its lock, or if that can't be determined.
[[nodiscard]] bool has_members(const std::string& folder);
/// True if a stage does; ports don't count.
[[nodiscard]] bool has_stages(const std::string& folder);

/// The shared lock of a stage: the caller keeps the descriptor open. Empty if the folder has no lock file, or
/// the lock can't be had: then the lock on the control block alone shows that the stage lives.
[[nodiscard]] shm::unique_fd lock_folder(const std::string& folder);

}  // namespace carousel::run
