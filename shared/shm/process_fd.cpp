#include "shm/process_fd.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace carousel::shm {
namespace {

/// Describes a lock on the whole file; the F_OFD_* commands require l_pid to be 0.
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

// The list of all process_fd objects. fork() holds the list's mutex, so that no descriptor is replaced while
// the child is created. The list is never destroyed, because a thread of the program may fork while the
// process exits.
struct process_fd_list {
    std::mutex mutex;
    process_fd* first = nullptr;

    static process_fd_list& get() {
        static process_fd_list& list = *new process_fd_list;
        static const int registered = ::pthread_atfork([] { list.mutex.lock(); }, [] { list.mutex.unlock(); },
                                                       [] {
                                                           list.close_all();
                                                           list.mutex.unlock();
                                                       });
        (void)registered;  // if memory is exhausted, no handler is registered, and children keep their copies
        return list;
    }
    void close_all() const noexcept {
        for (process_fd* p = first; p != nullptr; p = p->next_)
            if (const int fd = std::exchange(p->fd_, -1); fd >= 0) ::close(fd);
    }
};

process_fd::process_fd() {
    process_fd_list& all = process_fd_list::get();
    const std::lock_guard lock(all.mutex);
    next_ = all.first;
    if (next_ != nullptr) next_->previous_ = this;
    all.first = this;
}

process_fd::process_fd(process_fd&& other) noexcept : process_fd() {
    const std::lock_guard lock(process_fd_list::get().mutex);
    fd_ = std::exchange(other.fd_, -1);
}

process_fd& process_fd::operator=(process_fd&& other) noexcept {
    if (this == &other) return *this;
    const std::lock_guard lock(process_fd_list::get().mutex);
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    return *this;
}

process_fd::~process_fd() {
    process_fd_list& all = process_fd_list::get();
    const std::lock_guard lock(all.mutex);
    if (fd_ >= 0) ::close(fd_);
    (previous_ != nullptr ? previous_->next_ : all.first) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
}

void process_fd::reset(unique_fd fd) noexcept {
    const std::lock_guard lock(process_fd_list::get().mutex);
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd.release();
}

int lock_shared(int fd) noexcept { return set_lock(fd, F_RDLCK); }
int lock_exclusive(int fd) noexcept { return set_lock(fd, F_WRLCK); }
void unlock(int fd) noexcept { (void)set_lock(fd, F_UNLCK); }

bool is_locked_elsewhere(int fd) noexcept {
    struct flock conflicting = whole_file(F_WRLCK);
    return ::fcntl(fd, F_OFD_GETLK, &conflicting) != 0 || conflicting.l_type != F_UNLCK;
}

}  // namespace carousel::shm
