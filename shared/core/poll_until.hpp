#pragma once
// Waits for descriptors until a deadline. A signal that a handler of the program processes (a profiler's
// timer, SIGCHLD) does not end the wait: it is restarted with the remaining time. The only place that calls
// ppoll().

#include <poll.h>

#include <cstddef>

#include "core/types.hpp"

namespace carousel {

/// Waits until one of `fds` is ready or CLOCK_MONOTONIC reaches `deadline_ns`; with a deadline in the past
/// (0) it only checks. Returns the number of ready descriptors, 0 at the deadline, -1 with errno, which is
/// never EINTR. Any thread.
int poll_until(pollfd* fds, std::size_t count, u64 deadline_ns) noexcept;

/// The same for one descriptor. Returns its events among `wanted`, POLLHUP, POLLERR and POLLNVAL; 0 at the
/// deadline. A negative `fd` has no events.
[[nodiscard]] short events_of(int fd, short wanted, u64 deadline_ns = 0) noexcept;

}  // namespace carousel
