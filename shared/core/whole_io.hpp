#pragma once
// Reads and writes of files that continue after a signal and after a part. A write to a file may be cut by a
// signal on some file systems, and by a full disk, which the next write then reports.

#include <sys/types.h>

#include <cstddef>

#include "core/types.hpp"

namespace carousel {

/// Writes all bytes at the descriptor's position, or at `offset`. Returns false with errno; what was written
/// before stays. ENOSPC where the file takes no more.
[[nodiscard]] bool write_whole(int fd, const void* bytes, std::size_t count) noexcept;
[[nodiscard]] bool write_whole_at(int fd, const void* bytes, std::size_t count, u64 offset) noexcept;

/// Reads until `count` bytes are there or the file ends. Returns how many; -1 with errno.
[[nodiscard]] ssize_t read_whole(int fd, void* bytes, std::size_t count) noexcept;
[[nodiscard]] ssize_t read_whole_at(int fd, void* bytes, std::size_t count, u64 offset) noexcept;

/// Reserves room for bytes of a file (posix_fallocate). Returns 0 or the error number, which is never EINTR.
/// In pieces: a signal makes the kernel undo the piece that it is at, so a large call under a program's timer
/// would never end.
[[nodiscard]] int reserve_whole(int fd, u64 offset, u64 bytes) noexcept;

}  // namespace carousel
