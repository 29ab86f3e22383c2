#include "shm/marked_process.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::shm {
namespace {

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
        // The fields belong to one process if the pid's start time is the same before and after they are
        // read.
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
            // If the parent is alive now, it already had its pid when the child's stat was read.
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

}  // namespace carousel::shm
