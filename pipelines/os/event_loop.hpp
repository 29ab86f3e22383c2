#pragma once
// Classes with which a program waits for events of descriptors (by epoll) and for termination signals (as
// conditions to poll).

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <memory>

#include "core/process.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

// epoll with one handler per file descriptor. One thread. Handlers may watch and forget any fd, including
// their own.

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

// With this class, Ctrl-C and SIGTERM become a condition to poll and do not end the process. The class is
// used by commands that must write data or clean up before they end. Only one object may exist at a time, and
// only one thread may use it; threads that are started later inherit the blocked signals.

class interrupts {
public:
    interrupts();
    ~interrupts();
    interrupts(const interrupts&) = delete;
    interrupts& operator=(const interrupts&) = delete;
    /// Sleeps for `ns`, or returns true as soon as a signal arrives. That signal is consumed.
    bool sleep(u64 ns);

private:
    sigset_t before_{};
    shm::unique_fd fd_;
};

// Functions for termination signals while no handler is installed: the signals are blocked, and stay pending
// until they are polled.

/// Returns SIGINT, SIGTERM and SIGHUP, except those that were ignored when this program started (`nohup`).
[[nodiscard]] inline sigset_t end_signals() noexcept { return not_ignored({SIGINT, SIGTERM, SIGHUP}); }

/// Takes a pending termination signal; returns 0 if there is none. Doesn't wait.
[[nodiscard]] inline int pending_signal() noexcept {
    const sigset_t wanted = end_signals();
    const timespec none{};
    return std::max(0, sigtimedwait(&wanted, nullptr, &none));
}

/// While an object of this class exists, the signals stay pending, because a Ctrl-C that arrives before the
/// engine handles signals must not leave an orphaned lock folder or an incomplete start.
class run_signals_blocked {
public:
    run_signals_blocked() {
        const sigset_t wanted = end_signals();
        ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
        std::signal(SIGPIPE, SIG_IGN);
    }
    ~run_signals_blocked() {
        // a signal that arrived while the run was ending was meant for the run, so it is discarded
        while (pending_signal() > 0) {
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    run_signals_blocked(const run_signals_blocked&) = delete;
    run_signals_blocked& operator=(const run_signals_blocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace carousel::supervisor
