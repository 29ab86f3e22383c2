#pragma once
// Small things that every thread of the CPU backend needs.

#include <pthread.h>
#include <signal.h>

#include "core/types.hpp"
#include "core/usable_cores.hpp"

namespace carousel::device::cpu {

using carousel::usable_cores;

inline void name_this_thread(const char* name) noexcept { pthread_setname_np(pthread_self(), name); }

/// Threads started while one of these lives get no signals that a process handles (SIGINT, SIGTERM, ...):
/// those go to the program's own threads. Faults (SIGSEGV and its kin) stay as they are.
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
