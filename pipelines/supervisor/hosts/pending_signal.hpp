#pragma once
// A signal that has come while nothing handles them: they are blocked, and kept for who looks.

#include <algorithm>
#include <csignal>

namespace carousel::supervisor {

/// Takes one that asks for the end: SIGINT, SIGTERM, SIGHUP; 0: none has come. Doesn't wait.
[[nodiscard]] inline int pending_signal() noexcept {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&wanted, s);
    const timespec none{};
    return std::max(0, sigtimedwait(&wanted, nullptr, &none));
}

}  // namespace carousel::supervisor
