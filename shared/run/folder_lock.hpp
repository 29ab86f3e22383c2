#pragma once
// The locks in a run's folder show whether its processes are alive, in every pid, time and mount namespace
// that sees the folder:
//   - The supervisor holds FOLDER/lock exclusively with flock() until it exits (runs/run_lock.hpp). A
//     process that removes the leftovers of a dead run does the same for a moment.
//   - Each stage holds a shared lock on FOLDER/lock (shm/file_lock.hpp, independent of flock()), also while
//     there is no supervisor.
//   - A port's program holds the flock() of a separate file, FOLDER/port-SEAT-EPOCH.lock.
// The control block has such locks, too (shm/segment.hpp), but a container may have a separate /dev/shm.

#include <string>

#include "shm/fd_socket.hpp"

namespace carousel::run {

[[nodiscard]] std::string folder_lock(const std::string& folder);

/// True if a process holds the folder's exclusive lock, or if that cannot be determined. Takes and releases a
/// shared flock(): a process that tries to take the exclusive lock at that moment has to retry.
[[nodiscard]] bool has_supervisor(const std::string& folder);
/// True if a stage or a port's program holds its lock, or if that cannot be determined.
[[nodiscard]] bool has_members(const std::string& folder);
/// True if a stage holds its lock, or if that cannot be determined; ports do not count.
[[nodiscard]] bool has_stages(const std::string& folder);

/// Takes the shared lock of a stage; the caller keeps the descriptor open. Returns an empty descriptor if the
/// folder has no lock file or the lock is not available: then only the lock on the control block shows that
/// the stage is alive.
[[nodiscard]] shm::unique_fd lock_folder(const std::string& folder);

}  // namespace carousel::run
