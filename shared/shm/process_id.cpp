#include "shm/process_id.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/cgroup.hpp"
#include "core/clock.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "shm/segment.hpp"

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

constexpr int so_peerpidfd = 77;  // SO_PEERPIDFD: not in the system headers of 2023

/// Returns -1 with errno: ENOPROTOOPT before Linux 6.5.
unique_fd kernel_pidfd(int socket) noexcept {
    int fd = -1;
    socklen_t size = sizeof fd;
    return unique_fd(::getsockopt(socket, SOL_SOCKET, so_peerpidfd, &fd, &size) == 0 ? fd : -1);
}

namespace fs = std::filesystem;

/// Returns an empty string for a process that has ended.
std::string read_all(const fs::path& path) { return read_file(path.string()).value_or(""); }

/// The environment is a sequence of strings, each terminated by a 0.
bool has_word(const std::string& environment, const std::string& word) {
    for (std::size_t at = 0; at < environment.size();) {
        const std::size_t end = std::min(environment.find('\0', at), environment.size());
        if (environment.compare(at, end - at, word) == 0) return true;
        at = end + 1;
    }
    return false;
}

/// Field 4 of /proc/PID/stat, which follows the command in parentheses.
i32 parent_of(const std::string& stat) {
    const std::size_t at = stat.rfind(')');
    return at == std::string::npos || at + 4 >= stat.size()
               ? 0
               : static_cast<i32>(std::atoi(stat.c_str() + at + 4));
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
    const u64 found = start_time_of(id.pid);
    const bool reaped = signal_pidfd(fd, 0) == ESRCH;
    if (found != 0 && found == id.start_time && !reaped) return fd;
    ::close(fd);
    // If /proc can't be read, for want of descriptors or memory, the process may live.
    errno = reaped || found != 0 ? ESRCH : EAGAIN;
    return -1;
}

bool has_ended(int pidfd) noexcept { return (events_of(pidfd, POLLIN) & POLLIN) != 0; }

int signal_pidfd(int pidfd, int signal) noexcept {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0 ? 0 : errno;
}

// The start time is checked after the environment was read; if it is right, the environment is that of the
// process `id`.
std::string environment_of(const process_id& id) {
    std::string text = read_all(fmt::format("/proc/{}/environ", id.pid));
    return is_alive(id) ? text : "";
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
    } catch (const std::exception&) {  // there is no memory for the strings
        return false;
    }
}

peer_process peer_process_of(int socket, u64 reported_start_time) noexcept {
    peer_process p;
    p.pidfd = kernel_pidfd(socket);
    if (!p.pidfd && errno == ENOPROTOOPT) return peer_process_by_start_time(socket, reported_start_time);
    p.id.pid = peer_of(socket).pid;
    if (p.pidfd && p.id.pid > 0) p.id.start_time = start_time_of(p.pidfd.get(), p.id.pid);
    if (!p.pidfd || has_ended(p.pidfd.get())) {
        p.pidfd.reset();
        errno = ESRCH;
    }
    return p;
}

peer_process peer_process_by_start_time(int socket, u64 reported_start_time) noexcept {
    peer_process p;
    p.id = {peer_of(socket).pid, reported_start_time};
    if (p.id.pid <= 0) return p;
    if (reported_start_time != 0) {
        p.pidfd.reset(open_pidfd(p.id));
        return p;
    }
    p.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, p.id.pid, 0)));
    if (p.pidfd) p.id.start_time = start_time_of(p.pidfd.get(), p.id.pid);
    if (p.id.start_time != 0 && (events_of(socket, POLLRDHUP) & (POLLHUP | POLLRDHUP | POLLERR)) == 0)
        return p;
    p.pidfd.reset();
    errno = ESRCH;
    return p;
}

std::string mps_mark(const std::string& folder) { return "CAROUSEL_MPS_DOMAIN=" + folder; }
std::string mps_part_mark(const std::string& folder) { return "CAROUSEL_MPS_PART=" + folder; }
std::string mps_folder(const std::string& runtime_directory) { return runtime_directory + "/mps"; }

std::vector<process_id> marked_processes(const std::string& assignment) {
    struct found {
        i32 parent = 0;
        u64 start_time = 0;
    };
    std::map<i32, found> all;
    std::set<i32> marked;
    std::error_code failed;
    for (fs::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
        const i32 pid = std::atoi(at->path().filename().c_str());
        if (pid <= 0 || pid == ::getpid()) continue;
        // The fields belong to one process if the pid's start time is the same before and after the fields
        // are read.
        const u64 start_time = start_time_of(pid);
        const i32 parent = parent_of(read_all(at->path() / "stat"));
        const bool has_mark = has_word(read_all(at->path() / "environ"), assignment);
        if (start_time == 0 || start_time_of(pid) != start_time) continue;
        all[pid] = {parent, start_time};
        if (has_mark) marked.insert(pid);
    }
    for (bool grown = !marked.empty(); grown;) {
        grown = false;
        for (const auto& [pid, p] : all) {
            // If the parent is alive now, the parent already had its pid when the child's stat was read, so
            // the pid in that stat refers to this parent.
            if (marked.count(p.parent) == 0 || !is_alive({p.parent, all[p.parent].start_time})) continue;
            grown = marked.insert(pid).second || grown;
        }
    }
    std::vector<process_id> out;
    for (const i32 pid : marked) {
        const process_id id{pid, all[pid].start_time};
        if (is_alive(id)) out.push_back(id);
    }
    return out;
}

bool end_marked_processes(const std::string& assignment, u64 timeout_ns) noexcept try {
    const u64 until = now_ns() + timeout_ns;
    for (;;) {  // a process that was being started during the scan is found in the next pass
        std::vector<process_id> all = marked_processes(assignment);
        if (all.empty()) return true;
        for (const process_id& id : all) {
            const unique_fd fd(open_pidfd(id));
            if (fd) signal_pidfd(fd.get(), SIGKILL);
            if (fd) (void)events_of(fd.get(), POLLIN, until);
        }
        if (now_ns() >= until) return marked_processes(assignment).empty();
    }
} catch (const std::exception&) {
    return false;  // out of memory
}

bool maps_file(i32 pid, const std::string& name) {
    std::ifstream maps(fmt::format("/proc/{}/maps", pid));
    for (std::string line; std::getline(maps, line);)
        if (line.find(name) != std::string::npos) return true;
    return false;
}

bool maps_run(i32 pid, const std::string& run_id) {
    return maps_file(pid, fmt::format("/{}", segment::object_name(run_id)));
}

unique_fd open_member(process_id id, const std::string& run_id) {
    if (id.pid <= 0 || id.pid == ::getpid()) return {};
    const bool guessed = id.start_time == 0;
    if (guessed) id.start_time = start_time_of(id.pid);
    unique_fd fd(id.start_time != 0 ? open_pidfd(id) : -1);
    if (!fd || events_of(fd.get(), POLLIN) != 0) return {};
    // The maps are read after the open, so they are those of the process to which the pidfd refers.
    if (guessed && !maps_run(id.pid, run_id)) return {};
    return fd;
}

}  // namespace carousel::shm
