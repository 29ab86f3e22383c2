#pragma once
// The signals that ask for the end, while nothing handles them: blocked, and kept for who looks.

#include <algorithm>
#include <csignal>

namespace carousel::supervisor {

/// SIGINT, SIGTERM, SIGHUP.
[[nodiscard]] inline sigset_t end_signals() noexcept {
    sigset_t all;
    sigemptyset(&all);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, s);
    return all;
}

/// Takes one of them that has come; 0: none has. Doesn't wait.
[[nodiscard]] inline int pending_signal() noexcept {
    const sigset_t wanted = end_signals();
    const timespec none{};
    return std::max(0, sigtimedwait(&wanted, nullptr, &none));
}

}  // namespace carousel::supervisor
