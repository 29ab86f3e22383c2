#pragma once
// Folders of this user, one per run and one per space: the folder's files, and the lock of its leader.

#include <string>

#include "shm/fd_socket.hpp"

namespace carousel::shm {

/// $XDG_RUNTIME_DIR/NAME if the variable names a folder of this user, otherwise /tmp/NAME-UID; not created.
[[nodiscard]] std::string runtime_folder(const std::string& name);
/// Returns "; XDG_RUNTIME_DIR = /run/x is not used: it belongs to user 998 ..." for a message that something
/// was not found in a runtime_folder(); "" if the variable is used or not set.
[[nodiscard]] std::string unused_runtime_text();
/// Creates a folder of this user with mode 0700, or checks an existing one. Throws shm_error if it belongs to
/// another user, is not a folder, or cannot be created.
void make_private_folder(const std::string& folder);
/// Writes a file of such a folder atomically (temporary file, rename), mode 0600: a reader finds either the
/// old or the new text, even if the writer is killed while writing. Throws shm_error.
void write_whole_file(const std::string& path, const std::string& text);

inline constexpr std::size_t longest_folder_name = 40;
/// True for a valid folder name: letters, digits, - _ and inner dots, at most 40 characters, no leading -.
[[nodiscard]] bool is_folder_name(const std::string& name) noexcept;

// The lock of a folder, held exclusively by one process (the supervisor of a run, the holder of a space) and
// shared by others (stages, clients): the file FOLDER/lock.
//   - The leader holds the file's lock exclusively with flock() until the leader exits. A process that
//     removes the leftovers of a dead leader also takes this exclusive lock for a moment.
//   - Each other process holds a shared lock on the file (process_fd.hpp, independent of flock()), even if
//     there is no leader.
// The kernel releases both locks regardless of how a process ends, and both are visible in every pid, time
// and mount namespace in which the folder is visible.

/// FOLDER/lock
[[nodiscard]] std::string folder_lock(const std::string& folder);

enum class absent_lock : bool { keep, create };
/// Takes the leader's lock on an existing folder without waiting. With `create`, the lock file is created if
/// it does not exist. Empty if another process has the lock (errno EWOULDBLOCK), if the folder has just been
/// removed (ESTALE or ENOENT), if there is no lock file (ENOENT), or if the lock file can't be opened (errno
/// of open()).
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
