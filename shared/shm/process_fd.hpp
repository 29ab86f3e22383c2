#pragma once
// A descriptor that belongs only to this process: fork() closes it in the child.
// Reason: a child that keeps a copy of a connection hides the death of its parent from the peer (no EOF). A
// child that keeps a copy of a locked file keeps the lock, because flock() belongs to the open file
// description, which parent and child share. An fcntl() record lock would belong to the process and would not
// be inherited; but the kernel would release it at any close() of any descriptor of that file in this
// process, and a lock that is lost while memory is still mapped breaks a fence. A lock that is kept too long,
// by contrast, only delays a successor. The lock is therefore a flock(), and the child closes its copy.
// A pthread_atfork() handler closes the copy, so this also works for fork() calls in libraries of the
// process. vfork() and posix_spawn() run no handlers; their children share nothing after exec (CLOEXEC). A
// child of a raw clone() keeps its copies until it ends or calls exec: the parent's place then stays
// occupied, which is the safe failure mode. Even if the parent is killed in the middle of fork(), the child
// closes its copies before it returns from fork().

#include "shm/fd_socket.hpp"

namespace carousel::shm {

/// Owns a descriptor. May be used from any thread, but not concurrently.
class process_fd {
public:
    process_fd();
    explicit process_fd(unique_fd fd) : process_fd() { reset(std::move(fd)); }
    process_fd(process_fd&& other) noexcept;
    process_fd& operator=(process_fd&& other) noexcept;
    process_fd(const process_fd&) = delete;
    process_fd& operator=(const process_fd&) = delete;
    ~process_fd();
    void reset(unique_fd fd = {}) noexcept;
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    friend struct process_fd_list;
    int fd_ = -1;
    process_fd *previous_ = nullptr, *next_ = nullptr;
};

// Locks that prove that a process is alive: open file description locks (fcntl F_OFD_SETLK) on a whole file.
// A process that takes part in a run holds a shared lock on the run's control block and one on the lock file
// in the run's folder. The kernel releases such a lock with the last descriptor of the open file, that is,
// when the process and each child that inherited the descriptor by fork() have ended, regardless of how they
// end. exec() closes the descriptor (CLOEXEC), so that a program which a stage starts does not make a dead
// run appear alive. A process that is stopped or frozen keeps its lock. The lock is visible in every pid,
// time and mount namespace in which the file is visible, unlike a pid or a heartbeat. A memory mapping holds
// no lock, so the descriptor stays open.
// The functions are thread-safe. These locks are independent of flock() on the same file, except on a network
// file system that implements flock() by such locks.

/// Takes a shared lock without waiting; the descriptor must be readable. Returns 0, or errno: EAGAIN if
/// another open file has an exclusive lock.
[[nodiscard]] int lock_shared(int fd) noexcept;
/// Takes an exclusive lock without waiting, or turns this open file's shared lock into an exclusive lock; the
/// descriptor must be writable. Returns 0, or errno: EAGAIN if another open file has a lock.
[[nodiscard]] int lock_exclusive(int fd) noexcept;
/// Releases the lock of this open file, also for the other processes that share the open file.
void unlock(int fd) noexcept;
/// True if another open file has a lock, or if that can't be determined.
[[nodiscard]] bool is_locked_elsewhere(int fd) noexcept;

}  // namespace carousel::shm
