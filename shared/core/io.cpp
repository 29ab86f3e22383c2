#include "core/io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "core/clock.hpp"

namespace carousel {
namespace fs = std::filesystem;
namespace {

/// Calls `part` with the number of bytes processed so far, until all are processed or `part` returns 0.
/// Returns the number of processed bytes, or -1 with errno set.
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

int poll_until(pollfd* fds, std::size_t count, u64 deadline_ns) noexcept {
    for (;;) {
        const u64 now = now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        const timespec t{static_cast<time_t>(left / ns_per_s), static_cast<long>(left % ns_per_s)};
        const int ready = ::ppoll(fds, count, &t, nullptr);
        if (ready >= 0 || errno != EINTR) return ready;
    }
}

short events_of(int fd, short wanted, u64 deadline_ns) noexcept {
    pollfd p{fd, wanted, 0};
    return poll_until(&p, 1, deadline_ns) > 0 ? p.revents : short{0};
}

std::optional<std::string> read_file(const std::string& path, std::size_t max_bytes) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    std::string text;
    char part[16384];
    ssize_t got = 0;
    while ((got = ::read(fd, part, sizeof part)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) text.append(part, static_cast<std::size_t>(got));
        if (text.size() > max_bytes) break;
    }
    const int why = text.size() > max_bytes ? EFBIG : errno;
    ::close(fd);
    errno = why;
    if (got < 0 || text.size() > max_bytes) return std::nullopt;
    return text;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> all;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        all.push_back(at->path());
    std::sort(all.begin(), all.end());
    return all;
}

u64 bytes_in(const fs::path& folder) {
    u64 sum = 0;
    std::error_code failed;
    for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
        std::error_code gone;
        const bool counts = fs::is_regular_file(fs::symlink_status(at->path(), gone));
        const std::uintmax_t bytes = counts ? fs::file_size(at->path(), gone) : 0;
        if (!gone) sum += static_cast<u64>(bytes);  // the size of a file that was removed meanwhile is -1
    }
    return sum;
}

}  // namespace carousel
