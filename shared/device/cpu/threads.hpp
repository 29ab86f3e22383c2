#pragma once
// Helpers for the threads of the CPU backend.

#include <pthread.h>
#include <signal.h>

#include "core/cgroup.hpp"
#include "core/types.hpp"

namespace carousel::device::cpu {

using carousel::usable_cores;

inline void name_this_thread(const char* name) noexcept { pthread_setname_np(pthread_self(), name); }

/// Threads started while an instance exists receive no signals that a process handles (SIGINT, SIGTERM, ...):
/// such signals go to the program's own threads. Fault signals (SIGSEGV, SIGBUS, ...) stay unblocked.
class signals_blocked {
public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
            sigdelset(&all, fault);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace carousel::device::cpu
