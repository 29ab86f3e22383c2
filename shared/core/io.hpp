#pragma once
// Input and output on descriptors: whole buffers, waits with a deadline, whole files.

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel {

// Reads and writes of files that continue after a signal and after a partial transfer. On some file systems a
// signal can shorten a write to a file; a full disk shortens it as well, and the next write reports the
// error.

/// Writes all bytes at the descriptor's position, or at `offset`. Returns false with errno; the bytes written
/// before the error stay written. ENOSPC if the file accepts no more bytes.
[[nodiscard]] bool write_whole(int fd, const void* bytes, std::size_t count) noexcept;
[[nodiscard]] bool write_whole_at(int fd, const void* bytes, std::size_t count, u64 offset) noexcept;

/// Reads until `count` bytes are read or the file ends. Returns the number of bytes; -1 with errno.
[[nodiscard]] ssize_t read_whole(int fd, void* bytes, std::size_t count) noexcept;
[[nodiscard]] ssize_t read_whole_at(int fd, void* bytes, std::size_t count, u64 offset) noexcept;

/// Reserves space for `bytes` bytes of a file (posix_fallocate). Returns 0 or the error number, which is
/// never EINTR. Works in pieces, because a signal makes the kernel undo the current piece, so a large call
/// would never complete in a program with a periodic timer.
[[nodiscard]] int reserve_whole(int fd, u64 offset, u64 bytes) noexcept;

// Waits for descriptors until a deadline. A signal that a handler of the program processes (a profiler's
// timer, SIGCHLD) does not end the wait: it is restarted with the remaining time. The only place that calls
// ppoll().

/// Waits until one of `fds` is ready or CLOCK_MONOTONIC reaches `deadline_ns`; with a deadline in the past
/// (0) it only checks. Returns the number of ready descriptors, 0 at the deadline, -1 with errno, which is
/// never EINTR. Any thread.
int poll_until(pollfd* fds, std::size_t count, u64 deadline_ns) noexcept;

/// The same for one descriptor. Returns its events among `wanted`, POLLHUP, POLLERR and POLLNVAL; 0 at the
/// deadline. A negative `fd` has no events.
[[nodiscard]] short events_of(int fd, short wanted, u64 deadline_ns = 0) noexcept;

/// Returns the contents of a file, or nothing with errno if it can't be opened or read. File errors never
/// throw, unlike with stream iterators: under /proc a read fails whenever the process ends between open and
/// read, which is a frequent case here. A file of more than `max_bytes` is refused (EFBIG).
std::optional<std::string> read_file(const std::string& path,
                                     std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// The sorted paths of a folder's entries; empty if the folder can't be read. An entry may have been removed
/// in the meantime.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
/// Total bytes of all regular files below a folder; links are not followed, and a file that can't be read
/// counts as 0.
[[nodiscard]] u64 bytes_in(const std::filesystem::path& folder);

}  // namespace carousel
