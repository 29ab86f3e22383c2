#pragma once
// epoll with one handler per file descriptor. One thread. Handlers may watch and forget any fd, including
// their own.

#include <sys/epoll.h>

#include <functional>
#include <map>
#include <memory>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

class event_loop {
public:
    using handler = std::function<void(u32 events)>;
    event_loop();  ///< throws shm_error
    /// Calls `fn` when `fd` has one of `events` (EPOLLIN ...; hang-ups are always reported). The caller keeps
    /// ownership of the fd.
    void watch(int fd, u32 events, handler fn);
    /// Must be called before the fd is closed.
    void forget(int fd) noexcept;
    /// Waits at most timeout_ms and runs the handlers of the events that have occurred.
    void run_once(int timeout_ms);

private:
    struct watched {
        u32 generation;
        handler fn;
    };
    shm::unique_fd epoll_;
    std::map<int, std::shared_ptr<watched>> watched_;
    u32 generation_ = 0;
};

}  // namespace carousel::supervisor
