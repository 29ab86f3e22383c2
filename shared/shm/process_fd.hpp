#pragma once
// A descriptor that belongs only to this process: fork() closes it in the child.
//
// Reason: a child that keeps a copy of a connection hides the death of its parent from the peer (no EOF), and
// one that keeps a copy of a locked file keeps the lock: flock() belongs to the open file description, which
// parent and child share. An fcntl() record lock would belong to the process and is not inherited; but the
// kernel releases it at any close() of any descriptor of that file in this process, and a lock that is lost
// while memory is still mapped breaks a fence. A lock that is kept too long only delays a successor. The lock
// is therefore a flock(), and the child closes its copy.
//
// A pthread_atfork() handler closes it, so this also works for fork() calls in libraries of the process.
// vfork() and posix_spawn() run no handlers; their children share nothing after exec (CLOEXEC). A child of a
// raw clone() keeps its copies until it ends or calls exec: the parent's place then stays occupied, which is
// the safe failure mode. If the parent is killed in the middle of fork(), the child closes its copies before
// it returns from fork().

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

}  // namespace carousel::shm
