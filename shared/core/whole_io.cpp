#include "core/whole_io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace carousel {
namespace {

/// Calls `part` with the number of bytes done until all are done or `part` returns 0. Returns the number of
/// bytes; -1 with errno.
template <typename Part>
ssize_t whole(std::size_t count, Part part) noexcept {
    std::size_t done = 0;
    while (done < count) {
        const ssize_t n = part(done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    return static_cast<ssize_t>(done);
}

bool all_of(ssize_t done, std::size_t count) noexcept {
    if (done >= 0 && static_cast<std::size_t>(done) != count) errno = ENOSPC;
    return done == static_cast<ssize_t>(count);
}

}  // namespace

bool write_whole(int fd, const void* bytes, std::size_t count) noexcept {
    const auto* from = static_cast<const char*>(bytes);
    return all_of(whole(count, [&](std::size_t done) { return ::write(fd, from + done, count - done); }),
                  count);
}

bool write_whole_at(int fd, const void* bytes, std::size_t count, u64 offset) noexcept {
    const auto* from = static_cast<const char*>(bytes);
    return all_of(whole(count,
                        [&](std::size_t done) {
                            return ::pwrite(fd, from + done, count - done, static_cast<off_t>(offset + done));
                        }),
                  count);
}

ssize_t read_whole(int fd, void* bytes, std::size_t count) noexcept {
    auto* to = static_cast<char*>(bytes);
    return whole(count, [&](std::size_t done) { return ::read(fd, to + done, count - done); });
}

ssize_t read_whole_at(int fd, void* bytes, std::size_t count, u64 offset) noexcept {
    auto* to = static_cast<char*>(bytes);
    return whole(count, [&](std::size_t done) {
        return ::pread(fd, to + done, count - done, static_cast<off_t>(offset + done));
    });
}

int reserve_whole(int fd, u64 offset, u64 bytes) noexcept {
    constexpr u64 piece = u64{4} << 20U;
    for (const u64 end = offset + bytes; offset < end;) {
        const u64 now = std::min(piece, end - offset);
        const int failed = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(now));
        if (failed == EINTR) continue;
        if (failed != 0) return failed;
        offset += now;
    }
    return 0;
}

}  // namespace carousel
