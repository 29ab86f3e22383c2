#include "os/spawn.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/process.hpp"
#include "core/resource_limit.hpp"
#include "os/descriptors.hpp"
#include "shm/process_id.hpp"

extern char** environ;

namespace carousel::supervisor {
namespace {

// Returns the child's environment: this process's environment, with the variables in `added` replaced.
std::vector<std::string> merged(const std::vector<std::string>& added) {
    std::vector<std::string> out = added;
    for (char** at = environ; *at != nullptr; ++at) {
        const char* equals = std::strchr(*at, '=');
        if (equals == nullptr) continue;
        const std::string name(*at, static_cast<std::size_t>(equals - *at) + 1);
        if (std::none_of(added.begin(), added.end(),
                         [&](const std::string& a) { return a.compare(0, name.size(), name) == 0; }))
            out.emplace_back(*at);
    }
    return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    out.reserve(words.size() + 1);
    for (std::string& w : words) out.push_back(w.data());
    out.push_back(nullptr);
    return out;
}

/// Returns the signals whose default action is restored in the child. Children also ignore the signals that
/// were ignored when this program started (`nohup`), with three exceptions: SIGPIPE, which this program
/// itself ignores, and the two signals by which this program ends a child that has its own process group. A
/// child in the same group gets those two signals from the terminal.
sigset_t reset_in_child(bool same_group) noexcept {
    sigset_t set;
    sigfillset(&set);
    for (int s = 1; s < NSIG; ++s)
        if (is_ignored(s)) sigdelset(&set, s);
    sigaddset(&set, SIGPIPE);
    if (same_group) return set;
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

struct actions {
    posix_spawn_file_actions_t files{};
    posix_spawnattr_t attributes{};
    actions() {
        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&attributes);
    }
    ~actions() {
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attributes);
    }
    actions(const actions&) = delete;
    actions& operator=(const actions&) = delete;
};

struct {
    std::mutex mutex;  // of this process only
    std::set<pid_t> pids;
} own;

/// Returns the zombies among the children, as listed in /proc. Empty if /proc is not mounted or shows another
/// PID namespace.
std::vector<pid_t> zombies() {
    std::vector<pid_t> out;
    DIR* const all = ::opendir("/proc");
    if (all == nullptr) return out;
    while (const dirent* each = ::readdir(all)) {
        const auto pid = static_cast<pid_t>(std::strtol(each->d_name, nullptr, 10));
        if (pid <= 0) continue;
        const std::string stat = read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
        const std::size_t at = stat.rfind(')');  // the second field, the command, may contain any characters
        if (at == std::string::npos || at + 4 >= stat.size() || stat[at + 2] != 'Z') continue;
        if (std::strtol(stat.c_str() + at + 4, nullptr, 10) == ::getpid()) out.push_back(pid);
    }
    ::closedir(all);
    return out;
}

}  // namespace

spawned spawn(const spawn_request& request) {
    std::vector<std::string> argv = request.argv;
    std::vector<std::string> environment = merged(request.environment);
    actions a;
    shm::unique_fd nowhere;
    if (request.input >= 0)
        posix_spawn_file_actions_adddup2(&a.files, request.input, STDIN_FILENO);
    else if (!request.interactive)
        posix_spawn_file_actions_adddup2(&a.files, (nowhere = open_null(O_RDONLY)).get(), STDIN_FILENO);
    if (request.output >= 0) {
        posix_spawn_file_actions_adddup2(&a.files, request.output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&a.files, request.output, STDERR_FILENO);
    }
    if (request.extra_fd >= 0) posix_spawn_file_actions_adddup2(&a.files, request.extra_fd, 3);
    sigset_t none;
    sigemptyset(&none);
    const sigset_t reset = reset_in_child(request.interactive);
    posix_spawnattr_setsigmask(&a.attributes, &none);
    posix_spawnattr_setsigdefault(&a.attributes, &reset);
    posix_spawnattr_setpgroup(&a.attributes, 0);
    const int flags =
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (request.interactive ? 0 : POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setflags(&a.attributes, static_cast<short>(flags));
    pid_t pid = 0;
    const int failed = start_child(pid, [&] {
        return posix_spawnp(&pid, argv.at(0).c_str(), &a.files, &a.attributes, pointers(argv).data(),
                            pointers(environment).data());
    });
    if (is_shortage(failed))
        throw_system_error(fmt::format("starting {}", argv.at(0)), failed, no_thread_text(failed));
    if (failed != 0)
        throw config_error(fmt::format(
            "starting {}: {}; check that it is built and executable (key `run` of the pipeline file)",
            argv.at(0), errno_text(failed)));
    spawned out;
    out.pid = pid;
    out.start_time = shm::start_time_of(pid);
    out.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!out.pidfd) {
        const int why = errno;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        forget_child(pid);
        if (is_shortage(why))
            throw_system_error(fmt::format("opening a pidfd for {}", argv.at(0)), why, no_file_text(why));
        throw shm_error(fmt::format("opening a pidfd for {} (pid {}): {}; use Linux 5.4 or newer", argv.at(0),
                                    pid, errno_text(why)));
    }
    return out;
}

spawned spawn_when_possible(const spawn_request& request) {
    for (const u64 until = now_ns() + shortage_patience_ns;;) {
        try {
            return spawn(request);
        } catch (const out_of_resources&) {
            if (now_ns() >= until) throw;
        }
        ::usleep(100'000);
    }
}

void raise_oom_score(i32 pid) noexcept {
    constexpr long distance = 100, highest = 1000;
    char path[64], text[32];
    std::snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
    const shm::unique_fd own(::open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC));
    const shm::unique_fd its(::open(path, O_RDWR | O_CLOEXEC));
    const auto value_of = [&](int fd) {
        const ssize_t got = read_whole(fd, text, sizeof text - 1);
        text[std::max<ssize_t>(got, 0)] = '\0';
        return got > 0 ? std::strtol(text, nullptr, 10) : highest;
    };
    if (!own || !its) return;
    const long wanted = std::min(highest, value_of(own.get()) + distance);
    if (value_of(its.get()) >= wanted) return;
    const int length = std::snprintf(text, sizeof text, "%ld", wanted);
    (void)write_whole(its.get(), text, static_cast<std::size_t>(length));
}

exit_status reap(int pidfd) noexcept {
    siginfo_t info{};
    exit_status out;
    if (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) != 0 ||
        info.si_pid == 0)
        return out;
    forget_child(info.si_pid);
    out.known = true;
    if (info.si_code == CLD_EXITED) {
        out.exit_code = info.si_status;
    } else {
        out.signal = info.si_status;
    }
    return out;
}

bool is_exiting(i32 pid) noexcept {
    constexpr unsigned long exiting = 0x4;  // PF_EXITING in field 9 of /proc/PID/stat
    char path[64], text[512];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const shm::unique_fd fd(::open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t got = fd ? read_whole(fd.get(), text, sizeof text - 1) : 0;
    if (got <= 0) return true;
    text[got] = '\0';
    const char* at = std::strrchr(text, ')');  // the second field, the command in parentheses, may contain
                                               // any character
    char state = '?';
    unsigned long flags = 0;
    if (at == nullptr || std::sscanf(at + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) != 2) return true;
    return state == 'Z' || state == 'X' || (flags & exiting) != 0;
}

int start_child(pid_t& pid, const std::function<int()>& start) {
    const std::lock_guard lock(own.mutex);
    const int failed = start();
    if (failed == 0) own.pids.insert(pid);
    return failed;
}

void forget_child(pid_t pid) noexcept {
    const std::lock_guard lock(own.mutex);
    own.pids.erase(pid);
}

bool inherits_orphans() noexcept {
    int subreaper = 0;
    return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

u32 reap_orphans(const std::function<bool(pid_t)>& known) {
    const std::lock_guard lock(own.mutex);
    u32 count = 0;
    const auto reap = [&](pid_t pid) {
        if (own.pids.contains(pid) || known(pid) || ::waitpid(pid, nullptr, WNOHANG) != pid) return false;
        ++count;
        return true;
    };
    for (;;) {
        siginfo_t first{};
        // WNOWAIT leaves the child's status in place, because only the status of an orphan may be taken;
        // reap() takes that status.
        if (::waitid(P_ALL, 0, &first, WEXITED | WNOHANG | WNOWAIT) != 0 || first.si_pid == 0) return count;
        if (!reap(first.si_pid)) break;
    }
    for (const pid_t pid : zombies())
        (void)reap(pid);  // this also finds zombies that waitid() would report only after a child that other
                          // code will reap
    return count;
}

}  // namespace carousel::supervisor
