#include "shm/file_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace carousel::shm {
namespace {

/// Of the whole file; F_OFD_* require l_pid to be 0.
struct flock whole_file(short type) noexcept {
    struct flock all {};
    all.l_type = type;
    all.l_whence = SEEK_SET;
    return all;
}

int set_lock(int fd, short type) noexcept {
    const struct flock wanted = whole_file(type);
    return ::fcntl(fd, F_OFD_SETLK, &wanted) == 0 ? 0 : errno;
}

}  // namespace

int lock_shared(int fd) noexcept { return set_lock(fd, F_RDLCK); }
int lock_exclusive(int fd) noexcept { return set_lock(fd, F_WRLCK); }
void unlock(int fd) noexcept { (void)set_lock(fd, F_UNLCK); }

bool is_locked_elsewhere(int fd) noexcept {
    struct flock conflicting = whole_file(F_WRLCK);
    return ::fcntl(fd, F_OFD_GETLK, &conflicting) != 0 || conflicting.l_type != F_UNLCK;
}

}  // namespace carousel::shm
