#include "shm/runtime_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "shm/process_fd.hpp"

namespace carousel::shm {
namespace {

void write_all(const std::string& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) throw shm_error(fmt::format("writing {}: {}", file, no_room_text(errno, "")));
    const bool written = write_whole(fd, text.data(), text.size());
    const int code = errno;
    ::close(fd);
    if (written) return;
    ::unlink(file.c_str());
    throw shm_error(fmt::format("writing {}: {}", file, no_room_text(code, "")));
}

unique_fd open_lock(const std::string& folder) {
    return unique_fd(::open(folder_lock(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

// With sudo and in containers the variable can name another user's folder, or a folder that does not exist.
std::string why_unusable(const char* folder) {
    struct stat info {};
    if (folder[0] != '/') return "it is not an absolute path";
    if (::stat(folder, &info) != 0) return errno_text(errno);
    if (!S_ISDIR(info.st_mode)) return "it is not a folder";
    if (info.st_uid == ::geteuid()) return "";
    return fmt::format(
        "it belongs to user {}, but this process runs as {}, and a run is accessible to its own user only",
        info.st_uid, ::geteuid());
}

}  // namespace

std::string runtime_folder(const std::string& name) {
    const char* folder = std::getenv("XDG_RUNTIME_DIR");
    if (folder != nullptr && why_unusable(folder).empty()) return std::string(folder) + "/" + name;
    return fmt::format("/tmp/{}-{}", name, ::geteuid());
}

std::string unused_runtime_text() {
    const char* folder = std::getenv("XDG_RUNTIME_DIR");
    const std::string why = folder != nullptr ? why_unusable(folder) : "";
    return why.empty() ? "" : fmt::format("; XDG_RUNTIME_DIR = {} is not used: {}", folder, why);
}

void make_private_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw shm_error(fmt::format("creating the folder {}: {}", folder, errno_text(errno)));
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0)
        throw shm_error(fmt::format("inspecting {}: {}", folder, errno_text(errno)));
    if (!S_ISDIR(info.st_mode))
        throw shm_error(fmt::format(
            "{} is not a folder; remove it, or set XDG_RUNTIME_DIR to a folder that you own", folder));
    if (info.st_uid != ::geteuid())
        throw shm_error(
            fmt::format("{} belongs to user {}, but this process runs as {}; remove it, or set "
                        "XDG_RUNTIME_DIR to a folder that you own",
                        folder, info.st_uid, ::geteuid()));
    if ((info.st_mode & 0777) != 0700 && ::chmod(folder.c_str(), 0700) != 0)
        throw shm_error(fmt::format("restricting access to {}: {}", folder, errno_text(errno)));
}

void write_whole_file(const std::string& path, const std::string& text) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    write_all(temporary, text);
    if (::rename(temporary.c_str(), path.c_str()) == 0) return;
    const int code = errno;
    ::unlink(temporary.c_str());
    throw shm_error(fmt::format("writing {}: {}", path, no_room_text(code, "")));
}

bool is_folder_name(const std::string& name) noexcept {
    if (name.empty() || name.size() > longest_folder_name || name.front() == '.' || name.back() == '.' ||
        name.front() == '-')
        return false;
    return std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
}

std::string folder_lock(const std::string& folder) { return folder + "/lock"; }

unique_fd lead_folder(const std::string& folder, absent_lock a) {
    const std::string path = folder_lock(folder);
    const int create = a == absent_lock::create ? O_CREAT : 0;
    unique_fd lock(::open(path.c_str(), O_RDWR | O_CLOEXEC | create, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
    struct stat held {
    }, there{};
    // The previous leader may have removed the folder between open() and flock(): in that case this
    // descriptor refers to a file that no longer has a name.
    if (::fstat(lock.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
        held.st_dev == there.st_dev)
        return lock;
    errno = ESTALE;
    return {};
}

bool has_leader(const std::string& folder) { return is_flocked(folder_lock(folder)); }

unique_fd join_folder(const std::string& folder) {
    unique_fd lock = open_lock(folder);
    if (lock && lock_shared(lock.get()) != 0) lock.reset();
    return lock;
}

bool has_joined(const std::string& folder) {
    const unique_fd lock = open_lock(folder);
    return lock ? is_locked_elsewhere(lock.get()) : errno != ENOENT;
}

bool is_flocked(const std::string& path) {
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return errno != ENOENT;
    return ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace carousel::shm
