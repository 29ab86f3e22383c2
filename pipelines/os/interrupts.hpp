#pragma once
// Turns Ctrl-C (and SIGTERM) into a condition to poll instead of termination, for commands that must write or
// clean up first. Use from one thread, one object at a time; threads that are started later inherit the
// blocked signals.

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
    /// Sleeps for `ns`, or returns true as soon as a signal arrives. That signal is consumed.
    bool sleep(u64 ns);

private:
    sigset_t before_{};
    shm::unique_fd fd_;
};

}  // namespace carousel::supervisor
