#include "shm/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "shm/file_lock.hpp"

namespace carousel::shm {
namespace {

unique_fd open_lock(const std::string& folder) {
    return unique_fd(::open(folder_lock(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

}  // namespace

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
