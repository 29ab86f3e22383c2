#pragma once
// Ctrl-C (and SIGTERM) as something to look at instead of an end: for commands that have something to write
// or to put away first. One thread, one at a time; threads that are started later inherit the blocked
// signals.

#include <csignal>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

class interrupts {
public:
    interrupts();
    ~interrupts();
    interrupts(const interrupts&) = delete;
    interrupts& operator=(const interrupts&) = delete;
    /// Sleeps so long, or until a signal has come: true. It is taken then and ends nothing later.
    bool sleep(u64 ns);

private:
    sigset_t before_{};
    shm::unique_fd fd_;
};

}  // namespace carousel::supervisor
