#pragma once
// Small things that every thread of the CPU backend needs.

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>

#include "core/types.hpp"

namespace carousel::device::cpu {

/// Cores that this process may run on (its affinity mask), at least 1.
[[nodiscard]] inline unsigned usable_cores() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

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
