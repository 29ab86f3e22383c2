#include "shm/process_id.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/cgroup.hpp"
#include "core/io.hpp"

namespace carousel::shm {
namespace {
struct stat_line {
    char state = '?';
    u64 start_time = 0;
};

// The second field is the command in parentheses and may contain any character, so fields are counted from
// the last ')'.
bool read_stat(i32 pid, stat_line& out) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char text[1024];
    const auto got = read_whole(fd, text, sizeof text - 1);
    ::close(fd);
    if (got <= 0) return false;
    text[got] = '\0';
    const char* at = std::strrchr(text, ')');
    if (at == nullptr || at[1] == '\0') return false;
    out.state = at[2];
    at += 2;
    for (int field = 3; field < 22; ++field) {
        at = std::strchr(at, ' ');
        if (at == nullptr) return false;
        ++at;
    }
    out.start_time = std::strtoull(at, nullptr, 10);
    return true;
}
}  // namespace

u64 start_time_of(i32 pid) noexcept {
    stat_line s;
    return read_stat(pid, s) ? s.start_time : 0;
}

// Signal 0 fails with ESRCH once the process has been reaped; until then its pid is not reused.
u64 start_time_of(int pidfd, i32 pid) noexcept {
    const u64 found = start_time_of(pid);
    return signal_pidfd(pidfd, 0) == ESRCH ? 0 : found;
}

process_id this_process() noexcept { return {static_cast<i32>(getpid()), start_time_of(getpid())}; }

bool is_alive(const process_id& id) noexcept {
    stat_line s;
    return id.pid > 0 && read_stat(id.pid, s) && s.start_time == id.start_time && s.state != 'Z' &&
           s.state != 'X';
}

int open_pidfd(const process_id& id) noexcept {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, id.pid, 0));
    if (fd < 0) return -1;
    // The pid may have been reused since its start time was recorded. The pidfd pins the process, so the
    // start time is checked after the open.
    if (const u64 found = start_time_of(fd, id.pid); found == 0 || found != id.start_time) {
        ::close(fd);
        errno = ESRCH;
        return -1;
    }
    return fd;
}

bool has_ended(int pidfd) noexcept { return (events_of(pidfd, POLLIN) & POLLIN) != 0; }

int signal_pidfd(int pidfd, int signal) noexcept {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0 ? 0 : errno;
}

u64 resident_bytes(i32 pid) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/statm", pid);
    std::FILE* f = std::fopen(path, "re");
    if (f == nullptr) return 0;
    unsigned long long size = 0, resident = 0;
    const int got = std::fscanf(f, "%llu %llu", &size, &resident);
    std::fclose(f);
    return got == 2 ? resident * static_cast<u64>(sysconf(_SC_PAGESIZE)) : 0;
}

bool is_stopped(i32 pid) noexcept {
    stat_line s;
    if (!read_stat(pid, s)) return false;
    if (s.state == 'T' || s.state == 't') return true;
    try {
        return cgroups::of(pid).frozen();
    } catch (const std::exception&) {  // no memory for the text
        return false;
    }
}

}  // namespace carousel::shm
