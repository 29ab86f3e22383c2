#pragma once
// The timer of a sampling profiler: a signal every few milliseconds whose handler interrupts system calls.
#include <sys/time.h>

#include <csignal>

#include "core/types.hpp"

namespace carousel::test {

/// Interrupts this process as SIGPROF would, by SIGALRM without SA_RESTART. Threads that block it are not
/// interrupted.
class signal_timer {
public:
    explicit signal_timer(u32 every_us = 5'000) {
        struct sigaction act {};
        act.sa_handler = [](int) {};
        ::sigaction(SIGALRM, &act, &before_);
        const timeval every{0, static_cast<suseconds_t>(every_us)};
        const itimerval timer{every, every};
        ::setitimer(ITIMER_REAL, &timer, nullptr);
    }
    ~signal_timer() {
        const itimerval none{};
        ::setitimer(ITIMER_REAL, &none, nullptr);
        ::sigaction(SIGALRM, &before_, nullptr);
    }
    signal_timer(const signal_timer&) = delete;
    signal_timer& operator=(const signal_timer&) = delete;

private:
    struct sigaction before_ {};
};

/// For threads that must not be interrupted.
inline void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace carousel::test
