#pragma once
// Signals that were already ignored when a program started: by `nohup` (SIGHUP), by `trap ''` in a shell, or
// as a background job of a shell without job control (SIGINT, SIGQUIT). Such a signal stays ignored: the
// program neither handles nor blocks it. (A blocked signal is queued even if it is ignored, so a signalfd
// would read it.)
//
// Any thread. No function here changes an inherited disposition of SIG_IGN.

#include <csignal>
#include <initializer_list>

namespace carousel {

/// Returns true if the signal's disposition is SIG_IGN. To be called before the program itself ignores the
/// signal.
[[nodiscard]] inline bool is_ignored(int signal) noexcept {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// The subset of `wanted` that is not ignored: the signals that a program may block and read.
[[nodiscard]] inline sigset_t not_ignored(std::initializer_list<int> wanted) noexcept {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : wanted)
        if (!is_ignored(s)) sigaddset(&set, s);
    return set;
}

/// Installs `handler` unless the signal is ignored.
inline void handle_unless_ignored(int signal, void (*handler)(int)) noexcept {
    if (is_ignored(signal)) return;
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
}

}  // namespace carousel
