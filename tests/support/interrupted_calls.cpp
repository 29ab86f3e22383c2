// Preloaded into programs (LD_PRELOAD): every second call that a signal may interrupt is interrupted (EINTR),
// and every second transfer of more than one byte of a file is partial. A program's behaviour must not depend
// on it. Not waitpid(), which tests call themselves.
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <ctime>

namespace {

/// The C library's function of that type and name.
template <typename F>
F* next(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// Returns true for every second call with this counter; errno is EINTR then.
bool interrupted(unsigned& calls) {
    if (++calls % 2 == 0) return false;
    errno = EINTR;
    return true;
}

/// The bytes to transfer of a file: all, or half of them every second time. Other descriptors transfer whole
/// messages.
std::size_t part(int fd, std::size_t count, unsigned& calls) {
    struct stat info {};
    if (count < 2 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return count;
    return ++calls % 2 != 0 ? count / 2 : count;
}

}  // namespace

// NEXT(f): the function that f replaces. CALLS, PARTS: counters of this thread and function.
#define NEXT(name) static auto* const real = next<decltype(::name)>(#name)
#define INTERRUPT(result)               \
    static thread_local unsigned calls; \
    if (interrupted(calls)) return result

extern "C" {

int poll(pollfd* fds, nfds_t count, int timeout) {
    NEXT(poll);
    INTERRUPT(-1);
    return real(fds, count, timeout);
}
int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
    NEXT(ppoll);
    INTERRUPT(-1);
    return real(fds, count, timeout, mask);
}
int epoll_wait(int fd, epoll_event* events, int count, int timeout) {
    NEXT(epoll_wait);
    INTERRUPT(-1);
    return real(fd, events, count, timeout);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
    NEXT(recvmsg);
    INTERRUPT(-1);
    return real(fd, message, flags);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    NEXT(sendmsg);
    INTERRUPT(-1);
    return real(fd, message, flags);
}
int connect(int fd, const sockaddr* to, socklen_t size) {
    NEXT(connect);
    INTERRUPT(-1);
    return real(fd, to, size);
}
int accept4(int fd, sockaddr* from, socklen_t* size, int flags) {
    NEXT(accept4);
    INTERRUPT(-1);
    return real(fd, from, size, flags);
}
ssize_t read(int fd, void* to, std::size_t count) {
    NEXT(read);
    INTERRUPT(-1);
    static thread_local unsigned parts;
    return real(fd, to, part(fd, count, parts));
}
ssize_t write(int fd, const void* from, std::size_t count) {
    NEXT(write);
    INTERRUPT(-1);
    static thread_local unsigned parts;
    return real(fd, from, part(fd, count, parts));
}
ssize_t pread(int fd, void* to, std::size_t count, off_t at) {
    NEXT(pread);
    INTERRUPT(-1);
    static thread_local unsigned parts;
    return real(fd, to, part(fd, count, parts), at);
}
ssize_t pwrite(int fd, const void* from, std::size_t count, off_t at) {
    NEXT(pwrite);
    INTERRUPT(-1);
    static thread_local unsigned parts;
    return real(fd, from, part(fd, count, parts), at);
}
int posix_fallocate(int fd, off_t at, off_t count) {
    NEXT(posix_fallocate);
    INTERRUPT(EINTR);
    return real(fd, at, count);
}
int nanosleep(const timespec* time, timespec* left) {
    NEXT(nanosleep);
    INTERRUPT(-1);
    return real(time, left);
}
int usleep(useconds_t us) {
    NEXT(usleep);
    INTERRUPT(-1);
    return real(us);
}
// The doorbell's sleep.
long syscall(long number, ...) {
    NEXT(syscall);
    long a[6];
    va_list all;
    va_start(all, number);
    for (long& each : a) each = va_arg(all, long);
    va_end(all);
    static thread_local unsigned calls;
    if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && interrupted(calls)) return -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
