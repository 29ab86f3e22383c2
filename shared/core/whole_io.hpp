#pragma once
// Reads and writes of files that continue after a signal and after a partial transfer. On some file systems a
// signal can shorten a write to a file; a full disk shortens it as well, and the next write reports the
// error.

#include <sys/types.h>

#include <cstddef>

#include "core/types.hpp"

namespace carousel {

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

}  // namespace carousel
