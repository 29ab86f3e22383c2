#include "bench/process_figures.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "os/subprocess.hpp"

namespace carousel::bench {
namespace {

/// Returns the parent of a process; 0 if the process is gone.
i32 parent_of(i32 pid) {
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(in, text);
    const auto at = text.rfind(')');  // the second field may contain any character
    char state = 0;
    i32 parent = 0;
    if (at != std::string::npos) std::istringstream(text.substr(at + 1)) >> state >> parent;
    return parent;
}

std::vector<i32> all_processes() {
    std::vector<i32> pids;
    DIR* folder = ::opendir("/proc");
    if (folder == nullptr) return pids;
    while (const dirent* entry = ::readdir(folder)) {
        const std::string name = entry->d_name;
        i32 pid = 0;
        const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (failed == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
    }
    ::closedir(folder);
    return pids;
}

}  // namespace

std::vector<i32> family_of(i32 root) {
    std::multimap<i32, i32> children;
    for (const i32 pid : all_processes()) children.emplace(parent_of(pid), pid);
    std::vector<i32> family{root};
    for (std::size_t k = 0; k < family.size(); ++k) {
        const auto [first, last] = children.equal_range(family[k]);
        for (auto at = first; at != last; ++at) family.push_back(at->second);
    }
    return family;
}

std::map<i32, u64> cpu_ns_of(const std::vector<i32>& pids) {
    std::map<i32, u64> out;
    for (const i32 pid : pids) {
        clockid_t clock{};
        timespec t{};
        if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &t) == 0)
            out[pid] = static_cast<u64>(t.tv_sec) * 1'000'000'000U + static_cast<u64>(t.tv_nsec);
    }
    return out;
}

u64 cpu_ns_since(const std::map<i32, u64>& before, const std::map<i32, u64>& now) {
    u64 sum = 0;
    for (const auto& [pid, ns] : now) {
        const auto at = before.find(pid);
        const u64 had = at == before.end() ? 0 : at->second;
        if (ns > had) sum += ns - had;
    }
    return sum;
}

memory_figures memory_of(const std::vector<i32>& pids) {
    memory_figures sum;
    for (const i32 pid : pids) {
        u64 pages = 0;
        std::ifstream statm(fmt::format("/proc/{}/statm", pid));
        if (statm >> pages >> pages) sum.resident += pages * static_cast<u64>(::sysconf(_SC_PAGESIZE));
        std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
        for (std::string line; std::getline(rollup, line);) {
            u64 kib = 0;
            if (!line.starts_with("Pss:")) continue;
            if (std::istringstream(line.substr(4)) >> kib) sum.proportional += kib * 1024;
            break;
        }
    }
    return sum;
}

f64 gpu_bytes_in_use() {
    constexpr u32 patience_ms = 10'000;
    const auto result = supervisor::run_subprocess(
        {"nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"}, "", patience_ms);
    if (!result.succeeded()) return -1;
    f64 sum = 0, mib = 0;
    std::istringstream in(result.output);
    bool any = false;
    for (std::string line; std::getline(in, line);)
        if (std::istringstream(line) >> mib) sum += mib * 1024 * 1024, any = true;
    return any ? sum : -1;
}

}  // namespace carousel::bench
