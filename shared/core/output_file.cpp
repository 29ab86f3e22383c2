#include "core/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"

namespace carousel {
namespace {

constexpr u64 reader_patience_ns = 10 * ns_per_s;
constexpr u32 reader_poll_us = 5'000;
constexpr int most_links = 40;  // the kernel's limit
constexpr std::string_view temporary_mark = ".carousel-tmp.";

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// A link in /proc/PID/fd refers to an open file, not to a name, so the link's text is not a path that can be
/// opened or replaced.
struct process_link {
    bool is = false;
    int own = -1;  ///< the descriptor, if it belongs to this process
};

process_link process_link_of(const std::string& path) {
    const std::string folder = folder_of(path);
    const std::unique_ptr<char, decltype(&std::free)> real(
        ::realpath(folder.empty() ? "." : folder.c_str(), nullptr), &std::free);
    if (!real) return {};
    const std::string_view where = real.get();
    if (!where.starts_with("/proc/") || !where.ends_with("/fd")) return {};
    const std::string_view name = std::string_view(path).substr(folder.size());
    int fd = -1;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), fd);
    if (failed != std::errc() || end != name.data() + name.size()) return {};
    const std::string own = fmt::format("/proc/{}/", ::getpid());
    return {true, where.starts_with(own) ? fd : -1};
}

/// Refuses a link that belongs to another user in a folder like /tmp. The kernel makes the same check
/// (fs.protected_symlinks) when a link is opened, but not when the link is read, as in this function.
bool is_planted(const std::string& link, const struct stat& s) noexcept {
    struct stat folder {};
    const std::string path = folder_of(link);
    return ::stat(path.empty() ? "." : path.c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 &&
           (folder.st_mode & S_IWOTH) != 0 && s.st_uid != ::geteuid() && s.st_uid != folder.st_uid;
}

/// A mount point that is a file (e.g. a container's volume) can't be the target of a rename.
bool is_mount_root(const std::string& path) noexcept {
    struct statx s {};
    return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &s) == 0 &&
           (s.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool waits_for_a_reader(int fd) noexcept {
    struct stat s {};
    return ::fstat(fd, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISBLK(s.st_mode);
}

int write_parts(int fd, std::initializer_list<std::span<const std::byte>> parts) noexcept {
    for (const auto& part : parts)
        if (const int failed = write_output(fd, part); failed != 0) return failed;
    return 0;
}

/// Some file systems report a full disk only at close(). Closes the file. Returns `failed` if it is not 0. If
/// it is 0, returns the error number of close(), or 0.
int close_output(int fd, int failed) noexcept { return ::close(fd) != 0 && failed == 0 ? errno : failed; }

int open_temporary(const std::string& path) noexcept {
    ::unlink(path.c_str());  // removes a file left by a killed process that had the same pid
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::optional<output_target> find_output(const std::string& path) {
    std::string at = path;
    for (int links = 0; links < most_links; ++links) {
        struct stat s {};
        if (::lstat(at.c_str(), &s) != 0) {
            if (errno != ENOENT || at.empty()) return std::nullopt;
            return output_target{std::move(at)};
        }
        if (!S_ISLNK(s.st_mode)) {
            if (S_ISDIR(s.st_mode)) {
                errno = EISDIR;
                return std::nullopt;
            }
            const bool is_file = S_ISREG(s.st_mode), replaced = is_file && !is_mount_root(at);
            return output_target{std::move(at), is_file, replaced};
        }
        if (is_planted(at, s)) {
            errno = EACCES;
            return std::nullopt;
        }
        if (const process_link link = process_link_of(at); link.is)
            return output_target{std::move(at), false, false, link.own};
        char to[PATH_MAX];
        const ssize_t length = ::readlink(at.c_str(), to, sizeof to);
        if (length < 0) return std::nullopt;
        const std::string next(to, static_cast<std::size_t>(length));
        at = next.starts_with('/') ? next : folder_of(at).append(next);
    }
    errno = ELOOP;
    return std::nullopt;
}

std::string temporary_output(const std::string& path, i32 pid) {
    const std::string folder = folder_of(path);
    return fmt::format("{}.{}{}{}", folder, path.substr(folder.size()), temporary_mark, pid);
}

bool is_abandoned_output(std::string_view name) noexcept {
    const std::size_t at = name.rfind(temporary_mark);
    if (at == std::string_view::npos) return false;
    pid_t pid = 0;
    const char* last = name.data() + name.size();
    const auto [end, failed] = std::from_chars(name.data() + at + temporary_mark.size(), last, pid);
    return failed == std::errc() && end == last && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::string output_cause(int error_number, const std::string& otherwise) {
    const char* reader = error_number == ENXIO       ? " (no process has opened it for reading)"
                         : error_number == ETIMEDOUT ? " (its reader has read nothing for 10 s)"
                                                     : nullptr;
    if (reader != nullptr)
        return fmt::format("{}{}{}{}", errno_text(error_number), reader, otherwise.empty() ? "" : "; ",
                           otherwise);
    const bool has_own = no_room_text(error_number, "") != errno_text(error_number);
    if (!has_own || otherwise.empty()) return no_room_text(error_number, otherwise);
    return fmt::format("{}, or {}", no_room_text(error_number, ""), otherwise);
}

int open_output(const output_target& to) noexcept {
    if (to.descriptor >= 0) return ::fcntl(to.descriptor, F_DUPFD_CLOEXEC, 3);
    struct stat s {};
    const bool there = ::stat(to.path.c_str(), &s) == 0;
    const int how = !there ? O_CREAT : S_ISREG(s.st_mode) ? O_TRUNC : 0;
    for (const u64 until = now_ns() + reader_patience_ns;;) {
        const int fd = ::open(to.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | how, 0644);
        if (fd >= 0) return fd;
        if (errno == EINTR) continue;
        if (errno != ENXIO || !there || !S_ISFIFO(s.st_mode) || now_ns() > until) return -1;
        ::usleep(reader_poll_us);
        errno = ENXIO;
    }
}

// The user's descriptor may be blocking, and its flags are shared with other processes. So no write may
// block: when poll() reports POLLOUT, a pipe accepts PIPE_BUF bytes at once, so at most PIPE_BUF bytes are
// written.
int write_output(int fd, std::span<const std::byte> bytes) noexcept {
    if (!waits_for_a_reader(fd)) return write_whole(fd, bytes.data(), bytes.size()) ? 0 : errno;
    while (!bytes.empty()) {
        if (events_of(fd, POLLOUT, now_ns() + reader_patience_ns) == 0) return ETIMEDOUT;
        const ssize_t n = ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
        if (n < 0 && errno != EINTR && errno != EAGAIN) return errno;
        if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return 0;
}

int write_output_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts,
                      const std::function<bool()>& wanted) {
    const std::optional<output_target> to = find_output(path);
    if (!to) return errno;
    if (!to->replaced) {
        if (wanted && !wanted()) return 0;
        const int fd = open_output(*to);
        return fd < 0 ? errno : close_output(fd, write_parts(fd, parts));
    }
    const std::string temporary = temporary_output(to->path, ::getpid());
    const int fd = open_temporary(temporary);
    if (fd < 0) return errno;
    int failed = close_output(fd, write_parts(fd, parts));
    const bool unwanted = failed == 0 && wanted && !wanted();
    if (failed == 0 && !unwanted && ::rename(temporary.c_str(), to->path.c_str()) != 0) failed = errno;
    if (failed != 0 || unwanted) ::unlink(temporary.c_str());
    return failed;
}

output_file::output_file(std::string path, std::string what, std::string remedy)
    : path_(std::move(path)), what_(std::move(what)), remedy_(std::move(remedy)) {
    std::optional<output_target> to = find_output(path_);
    if (!to) fail(errno);
    target_ = std::move(*to);
    if (target_.replaced) {
        temporary_ = temporary_output(target_.path, ::getpid());
        fd_ = open_temporary(temporary_);
        if (fd_ < 0) fail(errno);
    } else if (target_.descriptor >= 0 ? ::fcntl(target_.descriptor, F_GETFD) < 0
                                       : ::access(target_.path.c_str(), W_OK) != 0) {
        fail(errno);
    }
}

output_file::~output_file() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(temporary_.c_str());
}

void output_file::fail(int error_number) const {
    throw output_error(fmt::format(
        "{}: {}", what_.empty() ? path_ + " can't be written" : what_ + " can't be written to " + path_,
        output_cause(error_number, remedy_)));
}

void output_file::write(std::string_view text) {
    if (!target_.replaced) {
        const int fd = open_output(target_);
        if (fd < 0) fail(errno);
        if (const int failed = close_output(fd, write_output(fd, bytes_of(text))); failed != 0) fail(failed);
        return;
    }
    if (const int failed = write_output(fd_, bytes_of(text)); failed != 0) fail(failed);
    if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP) fail(errno);
    if (::rename(temporary_.c_str(), target_.path.c_str()) != 0) fail(errno);
    ::close(std::exchange(fd_, -1));
}

output_stream::output_stream(std::string path, const std::string& remedy) : path_(std::move(path)) {
    const std::optional<output_target> to = find_output(path_);
    fd_ = to ? open_output(*to) : -1;
    if (fd_ < 0)
        throw output_error(fmt::format("{} can't be written: {}", path_, output_cause(errno, remedy)));
}

output_stream::~output_stream() { ::close(fd_); }

void output_stream::write(std::string_view text) {
    if (const int failed = write_output(fd_, bytes_of(text)); failed != 0)
        throw output_error(fmt::format("writing {}: {}", path_, output_cause(failed)));
}

}  // namespace carousel
