#pragma once
// The threads of the CPU backend.

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <memory>

#include "core/cgroup.hpp"
#include "core/types.hpp"

namespace carousel::device::cpu {

using carousel::usable_cores;

inline void name_this_thread(const char* name) noexcept { pthread_setname_np(pthread_self(), name); }

/// Threads that are started while an instance exists do not receive signals that a program handles (SIGINT,
/// SIGTERM, ...); such signals go to the program's own threads. Fault signals (SIGSEGV, SIGBUS, ...) stay
/// unblocked.
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

// A fixed set of threads for the parallel loops of a context's CPU queues. Idle threads sleep. The caller of
// a loop takes part in it. Only one loop runs at a time; the loops of several queues run one after another.

class pool {
public:
    /// `threads` is the total number of threads, including the calling thread; 0: one per core.
    explicit pool(unsigned threads);
    ~pool();
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    [[nodiscard]] unsigned size() const noexcept;  ///< threads that take part, including the caller

    /// Calls body(begin, end, worker) for disjoint ranges that together cover [0, count). Each range has at
    /// most `grain` items; an atomic counter assigns the ranges to the threads. worker < size() is the index
    /// of the thread that runs the range. Returns after all ranges are complete. Rethrows the first exception
    /// that a body throws.
    void parallel_for(u64 count, u64 grain,
                      const std::function<void(u64 begin, u64 end, unsigned worker)>& body);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace carousel::device::cpu
