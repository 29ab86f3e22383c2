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

// Functions that read and write files, and that continue after a signal and after a partial transfer. On some
// file systems a signal can shorten a write. A full disk also shortens a write, and then the next write
// returns the error.

/// Writes all bytes at the descriptor's position, or at `offset`. On an error returns false with errno set;
/// the bytes written before the error stay written. errno is ENOSPC if the file accepts no more bytes.
[[nodiscard]] bool write_whole(int fd, const void* bytes, std::size_t count) noexcept;
[[nodiscard]] bool write_whole_at(int fd, const void* bytes, std::size_t count, u64 offset) noexcept;

/// Reads until `count` bytes are read or the file ends. Returns the number of bytes read, or -1 with errno
/// set.
[[nodiscard]] ssize_t read_whole(int fd, void* bytes, std::size_t count) noexcept;
[[nodiscard]] ssize_t read_whole_at(int fd, void* bytes, std::size_t count, u64 offset) noexcept;

/// Reserves space for `bytes` bytes of a file (posix_fallocate). Returns 0 or the error number, which is
/// never EINTR. Reserves the space in pieces: a signal makes the kernel undo the current call, so in a
/// program with a periodic timer a call for the whole space would never complete.
[[nodiscard]] int reserve_whole(int fd, u64 offset, u64 bytes) noexcept;

// Waits for descriptors until a deadline. If a signal handler of the program runs meanwhile (for a profiler's
// timer, or SIGCHLD), the wait does not end, but is restarted with the remaining time. No other file calls
// ppoll().

/// Waits until one of `fds` is ready or CLOCK_MONOTONIC reaches `deadline_ns`; with a deadline in the past
/// (0), it only checks the descriptors. Returns the number of ready descriptors, 0 when the deadline is
/// reached, or -1 with errno set, which is never EINTR. Any thread.
int poll_until(pollfd* fds, std::size_t count, u64 deadline_ns) noexcept;

/// Like poll_until(), for one descriptor. Returns the events that have occurred, of those in `wanted` and of
/// POLLHUP, POLLERR and POLLNVAL. Returns 0 when the deadline is reached. A negative `fd` has no events.
[[nodiscard]] short events_of(int fd, short wanted, u64 deadline_ns = 0) noexcept;

/// Returns the contents of a file, or nothing with errno set if it can't be opened or read. A file error
/// never throws an exception (stream iterators would throw one): under /proc a read fails whenever the
/// process ends between open and read, which happens often here. A file of more than `max_bytes` is refused
/// (EFBIG).
std::optional<std::string> read_file(const std::string& path,
                                     std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// The sorted paths of a folder's entries; empty if the folder can't be read. When the function returns, an
/// entry may already have been removed.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
/// Total bytes of all regular files below a folder; links are not followed, and a file that can't be read
/// counts as 0.
[[nodiscard]] u64 bytes_in(const std::filesystem::path& folder);

}  // namespace carousel
