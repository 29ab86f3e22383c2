#pragma once
// Waits for descriptors against a deadline. A signal that a handler of the program takes (a profiler's timer,
// a child's end) does not end the wait: it is restarted with the remaining time. The one place that calls
// poll().

#include <poll.h>

#include <cstddef>

#include "core/types.hpp"

namespace carousel {

/// Waits until one of `fds` is ready or CLOCK_MONOTONIC reaches `deadline_ns`; a deadline that has passed
/// (0) only checks. Returns how many are ready, 0 at the deadline, -1 with errno, which is never EINTR. Any
/// thread.
int poll_until(pollfd* fds, std::size_t count, u64 deadline_ns) noexcept;

/// The same for one descriptor: its events among `wanted`, POLLHUP, POLLERR and POLLNVAL; 0: none in time. A
/// negative `fd` has no events.
[[nodiscard]] short events_of(int fd, short wanted, u64 deadline_ns = 0) noexcept;

}  // namespace carousel
