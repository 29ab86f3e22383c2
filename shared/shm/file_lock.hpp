#pragma once
// Locks that prove that a process is alive: open file description locks (fcntl F_OFD_SETLK) on a whole file.
//
// A process that takes part in a run holds a shared lock on the run's control block and one on the lock file
// in the run's folder. The kernel releases such a lock with the last descriptor of the open file: at the end
// of the process, however it ends, and of each child that inherited the descriptor by fork(). exec() closes
// the descriptor (CLOEXEC), so that a program which a stage starts does not make a dead run appear alive. A
// process that is stopped or frozen keeps its lock. The lock is visible in every pid, time and mount
// namespace in which the file is visible, unlike a pid or a heartbeat. A memory mapping holds no lock, so the
// descriptor stays open.
//
// The functions are thread-safe. These locks are independent of flock() on the same file, except on a network
// file system that implements flock() by such locks.

namespace carousel::shm {

/// Takes a shared lock without waiting; the descriptor must be readable. Returns 0, or errno: EAGAIN if
/// another open file has an exclusive lock.
[[nodiscard]] int lock_shared(int fd) noexcept;
/// Takes an exclusive lock without waiting, or turns this open file's shared lock into one; the descriptor
/// must be writable. Returns 0, or errno: EAGAIN if another open file has a lock.
[[nodiscard]] int lock_exclusive(int fd) noexcept;
/// Releases the lock of this open file, also for the processes that share it.
void unlock(int fd) noexcept;
/// True if another open file has a lock, or if that can't be determined.
[[nodiscard]] bool is_locked_elsewhere(int fd) noexcept;

}  // namespace carousel::shm
