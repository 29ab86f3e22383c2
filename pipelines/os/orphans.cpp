#include "os/orphans.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <vector>

#include "core/io.hpp"

namespace carousel::supervisor {
namespace {

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
        // WNOWAIT, because only an orphan's status may be taken (below).
        if (::waitid(P_ALL, 0, &first, WEXITED | WNOHANG | WNOWAIT) != 0 || first.si_pid == 0) return count;
        if (!reap(first.si_pid)) break;
    }
    for (const pid_t pid : zombies())
        (void)reap(pid);  // the children that are listed after a zombie that other code will reap
    return count;
}

}  // namespace carousel::supervisor
