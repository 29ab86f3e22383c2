#pragma once
// Handles the termination signals while no handler is installed: they are blocked, and stay pending until
// they are polled.

#include <algorithm>
#include <csignal>

#include "core/process.hpp"

namespace carousel::supervisor {

/// SIGINT, SIGTERM, SIGHUP, without the signals that were ignored when this program started (`nohup`).
[[nodiscard]] inline sigset_t end_signals() noexcept { return not_ignored({SIGINT, SIGTERM, SIGHUP}); }

/// Takes a pending termination signal; returns 0 if there is none. Doesn't wait.
[[nodiscard]] inline int pending_signal() noexcept {
    const sigset_t wanted = end_signals();
    const timespec none{};
    return std::max(0, sigtimedwait(&wanted, nullptr, &none));
}

/// Keeps the signals pending for its lifetime: Ctrl-C before the engine handles signals must not result in an
/// orphaned lock folder or an incomplete start.
class run_signals_blocked {
public:
    run_signals_blocked() {
        const sigset_t wanted = end_signals();
        ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
        std::signal(SIGPIPE, SIG_IGN);
    }
    ~run_signals_blocked() {
        // a signal that arrived while the run was ending was meant for the run
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
