#pragma once
// The lock of a folder, held exclusively by one process (the supervisor of a run, the holder of a space) and
// shared by others (stages, clients): the file FOLDER/lock.
//   - The leader holds it exclusively with flock() until it exits. A process that removes the leftovers of a
//     dead leader also takes this lock for a moment.
//   - Each other process holds a shared lock on the file (file_lock.hpp, independent of flock()), even if
//     there is no leader.
// The kernel releases both locks regardless of how a process ends, and both are visible in every pid, time
// and mount namespace in which the folder is visible.

#include <string>

#include "shm/fd_socket.hpp"

namespace carousel::shm {

/// FOLDER/lock
[[nodiscard]] std::string folder_lock(const std::string& folder);

enum class absent_lock : bool { keep, create };
/// Takes the leader's lock on an existing folder without waiting; `create`: makes the lock file. Empty if
/// another process has the lock (errno EWOULDBLOCK), the folder has just been removed (ESTALE; ENOENT, also
/// without a lock file), or the lock file can't be opened (its errno).
[[nodiscard]] unique_fd lead_folder(const std::string& folder, absent_lock a = absent_lock::create);
/// True if a process has the leader's lock, or if that can't be determined. Takes and releases a shared
/// flock(): a process that tries to take the leader's lock at that moment has to retry.
[[nodiscard]] bool has_leader(const std::string& folder);

/// Takes the lock of a participating process; the caller keeps the descriptor open. Empty if the folder has
/// no lock file or the lock is not available.
[[nodiscard]] unique_fd join_folder(const std::string& folder);
/// True if another process takes part, or if that can't be determined.
[[nodiscard]] bool has_joined(const std::string& folder);

/// True if a process holds the flock() of that file, or if that can't be determined. Takes and releases a
/// shared lock.
[[nodiscard]] bool is_flocked(const std::string& path);

}  // namespace carousel::shm
