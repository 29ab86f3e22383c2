// The calls of the C library that a simulated machine answers (--wrap in CMakeLists.txt). Without a machine,
// and for descriptors and processes that are not simulated, each is the C library's.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "core/clock.hpp"
#include "ledger/ledger.hpp"
#include "simulated_machine.hpp"

using carousel::i32;
using carousel::ns_per_ms;
using carousel::ns_per_s;
using carousel::u64;
using carousel::test::machine;
using carousel::test::simulated_process;

namespace {

constexpr int so_peerpidfd = 77;

u64 ns_of(const timespec& t) { return static_cast<u64>(t.tv_sec) * ns_per_s + static_cast<u64>(t.tv_nsec); }

/// The pid that a simulated peer has bound its socket to: the abstract name "carousel-pid-N-RUN".
i32 pid_of_peer(int socket) noexcept {
    sockaddr_un name{};
    socklen_t size = sizeof name;
    constexpr std::string_view prefix = "carousel-pid-";
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0 || size < 3) return 0;
    if (name.sun_path[0] != '\0' || std::strncmp(name.sun_path + 1, prefix.data(), prefix.size()) != 0)
        return 0;
    return static_cast<i32>(std::strtol(name.sun_path + 1 + prefix.size(), nullptr, 10));
}

}  // namespace

extern "C" {

int __real_clock_gettime(clockid_t clock, timespec* t);
int __wrap_clock_gettime(clockid_t clock, timespec* t) {
    machine* const m = machine::current();
    if (m == nullptr || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
        return __real_clock_gettime(clock, t);
    const u64 now = m->read_clock();
    t->tv_sec = static_cast<time_t>(now / ns_per_s);
    t->tv_nsec = static_cast<long>(now % ns_per_s);
    return 0;
}

int __real_epoll_wait(int fd, epoll_event* events, int most, int timeout_ms);
int __wrap_epoll_wait(int fd, epoll_event* events, int most, int timeout_ms) {
    machine* const m = machine::current();
    if (m == nullptr || !m->on_fiber()) return __real_epoll_wait(fd, events, most, timeout_ms);
    const u64 until = m->now() + static_cast<u64>(timeout_ms) * ns_per_ms;
    for (;;) {
        const int ready = __real_epoll_wait(fd, events, most, 0);
        if (ready != 0 || m->now() >= until) return ready;
        m->wait(until, {});
    }
}

int __real_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask);
int __wrap_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
    machine* const m = machine::current();
    if (m == nullptr || !m->on_fiber()) return __real_ppoll(fds, count, timeout, mask);
    const u64 until = timeout != nullptr ? m->now() + ns_of(*timeout) : ~u64{0};
    const timespec none{};
    for (;;) {
        const int ready = __real_ppoll(fds, count, &none, mask);
        if (ready != 0 || m->now() >= until) return ready;
        m->wait(until, {});
    }
}

int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us) {
    machine* const m = machine::current();
    if (m == nullptr || !m->on_fiber()) return __real_usleep(us);
    m->wait(m->now() + us * 1000ULL, [] { return false; });
    return 0;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a[6];
    for (long& each : a) each = va_arg(list, long);
    va_end(list);
    machine* const m = machine::current();
    if (m == nullptr) return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_pidfd_open) {
        simulated_process* const p = m->find(static_cast<i32>(a[0]));
        if (p == nullptr) return __real_syscall(number, a[0], a[1]);
        if (!p->reaped) return ::fcntl(p->pidfd, F_DUPFD_CLOEXEC, 0);
        errno = ESRCH;
        return -1;
    }
    if (number == SYS_pidfd_send_signal) {
        simulated_process* const p = m->by_pidfd(static_cast<int>(a[0]));
        if (p == nullptr) return __real_syscall(number, a[0], a[1], a[2], a[3]);
        errno = m->send_signal(*p, static_cast<int>(a[1]));
        return errno == 0 ? 0 : -1;
    }
    if (number == SYS_futex && static_cast<int>(a[1]) == FUTEX_WAIT) {
        errno = ETIMEDOUT;  // the simulated stages poll
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __real_posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]);
int __wrap_posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
    machine* const m = machine::current();
    if (m == nullptr) return __real_posix_spawnp(pid, file, actions, attributes, argv, envp);
    return m->spawn(*pid, envp);
}

int __real_waitid(idtype_t type, id_t id, siginfo_t* info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
    machine* const m = machine::current();
    simulated_process* const p =
        m != nullptr && static_cast<int>(type) == P_PIDFD ? m->by_pidfd(static_cast<int>(id)) : nullptr;
    if (p == nullptr) return __real_waitid(type, id, info, options);
    if (p->reaped || p->orphan) {
        errno = ECHILD;
        return -1;
    }
    info->si_pid = p->ended ? p->pid : 0;
    info->si_code = p->signal != 0 ? CLD_KILLED : CLD_EXITED;
    info->si_status = p->signal != 0 ? p->signal : p->exit_code;
    if (p->ended && (options & WNOWAIT) == 0) p->reaped = true;
    return 0;
}

int __real_getsockopt(int socket, int level, int name, void* value, socklen_t* size);
int __wrap_getsockopt(int socket, int level, int name, void* value, socklen_t* size) {
    machine* const m = machine::current();
    const i32 pid = m != nullptr && level == SOL_SOCKET && (name == SO_PEERCRED || name == so_peerpidfd)
                        ? pid_of_peer(socket)
                        : 0;
    if (pid == 0) return __real_getsockopt(socket, level, name, value, size);
    if (name == SO_PEERCRED) {
        const ucred who{pid, ::getuid(), ::getgid()};
        std::memcpy(value, &who, sizeof who);
        return 0;
    }
    const simulated_process* const p = m->find(pid);
    const int fd = p != nullptr && !p->reaped ? ::fcntl(p->pidfd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0) errno = ESRCH;
    std::memcpy(value, &fd, sizeof fd);
    return fd < 0 ? -1 : 0;
}

// Only the files of simulated processes are answered. The control groups of the real machine would make a
// history depend on its load.
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    machine* const m = machine::current();
    const std::string_view name(path);
    if (m == nullptr || (!name.starts_with("/proc/") && !name.starts_with("/sys/fs/cgroup")))
        return __real_open(path, flags, mode);
    simulated_process* const p = m->find(name.starts_with("/proc/") ? std::atoi(path + 6) : 0);
    if (p != nullptr && !p->reaped && name.ends_with("/stat")) {
        const int fd = ::memfd_create("stat", MFD_CLOEXEC);
        const std::string text = m->stat_of(*p);
        (void)!::write(fd, text.data(), text.size());
        ::lseek(fd, 0, SEEK_SET);
        return fd;
    }
    if (p == nullptr && !name.starts_with("/proc/self/cgroup") && !name.starts_with("/proc/self/mountinfo") &&
        name.starts_with("/proc/"))
        return __real_open(path, flags, mode);
    errno = ENOENT;
    return -1;
}

// A full disk has room for the rest of a record whose first byte is in the file: no record crosses a page
// (ledger/ledger.hpp).
ssize_t __real_pwrite(int fd, const void* bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    machine* const m = machine::current();
    struct stat s {};
    constexpr off_t record = sizeof(carousel::telemetry::ledger_record);
    if (m == nullptr || !m->disk_full || ::fstat(fd, &s) != 0 || s.st_dev != m->disk ||
        offset / record * record < s.st_size)
        return __real_pwrite(fd, bytes, count, offset);
    errno = ENOSPC;
    return -1;
}

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags) {
    machine* const m = machine::current();
    return m != nullptr && m->on_fiber() ? m->make_timer() : __real_timerfd_create(clock, flags);
}

int __real_timerfd_settime(int fd, int flags, const itimerspec* next, itimerspec* before);
int __wrap_timerfd_settime(int fd, int flags, const itimerspec* next, itimerspec* before) {
    machine* const m = machine::current();
    return m != nullptr && m->on_fiber() ? 0 : __real_timerfd_settime(fd, flags, next, before);
}

pid_t __real_getpid();
pid_t __wrap_getpid() {
    machine* const m = machine::current();
    return m != nullptr && m->pid() != 0 ? m->pid() : __real_getpid();
}

}  // extern "C"
