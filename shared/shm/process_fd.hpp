#pragma once
// A descriptor of this process alone: fork() closes it in the child.
//
// Why: a child that keeps a copy of a connection hides the death of its parent from the other end (no EOF),
// and one that keeps a copy of a locked file keeps the lock: flock() belongs to the open file, which parent
// and child share. An fcntl() record lock would belong to the process and is not inherited; but the kernel
// releases it at any close() of any descriptor of that file in this process, and a lock that is lost while
// memory is still mapped breaks a fence. A lock that is kept too long only delays a successor. So the lock
// stays a flock(), and the child drops its copy.
//
// A handler of pthread_atfork() does it, so it holds for fork() of every library in the process. vfork() and
// posix_spawn() run no handlers: their children share nothing after exec (CLOEXEC). A child of a raw clone()
// keeps its copies until it ends or calls exec: its parent's place then stays taken, which is the safe side.
// A parent that is killed in the middle of fork() leaves a child that closes the copies before it returns
// from fork().

#include "shm/fd_socket.hpp"

namespace carousel::shm {

/// Owns a descriptor. Any thread, one at a time.
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
