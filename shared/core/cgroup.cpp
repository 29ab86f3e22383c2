#include "core/cgroup.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <string_view>

#include "core/io.hpp"

namespace carousel {
namespace {

using std::string_view;

constexpr std::array<string_view, 5> controller_names = {"memory", "cpu", "pids", "freezer", "cpuset"};
constexpr u64 no_limit_v1 = u64{1} << 62;  ///< cgroup v1 writes "no limit" as a number just below 2^63

std::vector<string_view> split(string_view text, char separator) {
    std::vector<string_view> out;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        if (end > at) out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

bool lists(string_view names, string_view name) {
    const std::vector<string_view> all = split(names, ',');
    return std::find(all.begin(), all.end(), name) != all.end();
}

/// mountinfo writes blanks, tabs, newlines and backslashes as \ooo.
std::string unescaped(string_view text) {
    std::string out;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const auto octal = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
        if (text[k] == '\\' && k + 3 < text.size() && octal(k + 1) && octal(k + 2) && octal(k + 3)) {
            out += static_cast<char>((text[k + 1] - '0') * 64 + (text[k + 2] - '0') * 8 + text[k + 3] - '0');
            k += 3;
        } else {
            out += text[k];
        }
    }
    return out;
}

struct mount {
    std::string root, point, options;
    bool v2 = false;
};

std::vector<mount> mounts_of(const std::string& text) {
    std::vector<mount> out;
    for (const string_view line : split(text, '\n')) {
        const std::size_t dash = line.find(" - ");
        if (dash == string_view::npos) continue;
        const std::vector<string_view> left = split(line.substr(0, dash), ' ');
        const std::vector<string_view> right = split(line.substr(dash + 3), ' ');
        if (left.size() < 5 || right.empty() || !right[0].starts_with("cgroup")) continue;
        out.push_back({unescaped(left[3]), unescaped(left[4]),
                       right.size() > 2 ? std::string(right[2]) : std::string(), right[0] == "cgroup2"});
    }
    return out;
}

/// Returns the part of a cgroup's path below the root of a mount; nothing if the cgroup is not below that
/// root.
std::optional<string_view> path_below(string_view path, string_view mounted) {
    if (mounted == "/") mounted = "";
    if (!path.starts_with(mounted)) return std::nullopt;
    path.remove_prefix(mounted.size());
    if (!path.empty() && path.front() != '/') return std::nullopt;
    return path == "/" ? "" : path;
}

std::vector<std::string> folders_of(const std::vector<mount>& mounts, bool v2, string_view controller,
                                    string_view path) {
    const mount* best = nullptr;
    string_view below;
    for (const mount& m : mounts) {
        if (m.v2 != v2 || (!v2 && !lists(m.options, controller))) continue;
        const auto part = path_below(path, m.root);
        // Chooses the mount below which the most ancestors are visible. Of several such mounts it chooses the
        // last, because a later mount hides an earlier one at the same place.
        if (!part || (best != nullptr && part->size() < below.size())) continue;
        best = &m;
        below = *part;
    }
    std::vector<std::string> out;
    if (best == nullptr || path.starts_with("/..")) return out;
    for (std::string folder = best->point + std::string(below); folder.size() > best->point.size();
         folder.resize(folder.rfind('/')))
        out.push_back(folder);
    out.push_back(best->point);
    return out;
}

std::optional<u64> number_of(string_view text) {
    u64 value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end == text.data()) return std::nullopt;
    return value;
}

std::optional<u64> number_in(const std::string& path) {
    const std::optional<std::string> text = read_file(path);
    return text ? number_of(*text) : std::nullopt;
}

/// Returns the number that follows `key` and a blank at the beginning of a line.
std::optional<u64> number_in(const std::string& path, string_view key) {
    const std::optional<std::string> text = read_file(path);
    if (!text) return std::nullopt;
    for (const string_view line : split(*text, '\n'))
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
            return number_of(line.substr(key.size() + 1));
    return std::nullopt;
}

void keep_tighter(std::optional<cgroup_limit>& best, cgroup_limit other) {
    if (!best || other.left() < best->left()) best = std::move(other);
}

/// Returns the number of CPUs that the quota of one cgroup allows; nothing if it has no quota.
std::optional<cgroup_cpu_limit> quota_of(const std::string& folder, bool v2) {
    const std::string file = folder + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us");
    // Examples: "max 100000" and "50000 100000"; in cgroup v1, "-1" and "50000".
    const std::optional<std::string> text = read_file(file);
    const std::vector<string_view> words = text ? split(*text, ' ') : std::vector<string_view>();
    const std::optional<u64> quota = words.empty() ? std::nullopt : number_of(words[0]);
    const std::optional<u64> period = !v2                ? number_in(folder + "/cpu.cfs_period_us")
                                      : words.size() > 1 ? number_of(words[1])
                                                         : std::nullopt;
    if (!quota || !period || *period == 0) return std::nullopt;
    return cgroup_cpu_limit{static_cast<f64>(*quota) / static_cast<f64>(*period), file};
}

}  // namespace

cgroups cgroups::of(i32 pid, std::string root) {
    cgroups out;
    out.root_ = std::move(root);
    const std::string own =
        out.root_ + (pid == 0 ? "/proc/self/cgroup" : fmt::format("/proc/{}/cgroup", pid));
    const std::optional<std::string> text = read_file(own);
    const std::optional<std::string> table = read_file(out.root_ + "/proc/self/mountinfo");
    if (!text || !table) return out;
    std::vector<mount> mounts = mounts_of(*table);
    for (mount& m : mounts) m.point = out.root_ + m.point;
    std::optional<string_view> unified;
    // The format is "ID:CONTROLLERS:PATH"; for cgroup v2 it is "0::PATH".
    for (const string_view line : split(*text, '\n')) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == string_view::npos ? first : line.find(':', first + 1);
        if (second == string_view::npos) continue;
        const string_view names = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (names.empty()) unified = path;
        for (std::size_t k = 0; k < controller_names.size(); ++k)
            if (lists(names, controller_names[k]))
                out.chains_[k] = {false, folders_of(mounts, false, controller_names[k], path)};
    }
    if (!unified) return out;
    const std::vector<std::string> folders = folders_of(mounts, true, "", *unified);
    if (!folders.empty()) out.unified_ = folders.front();
    for (cgroup_chain& c : out.chains_)
        if (c.folders.empty()) c = {true, folders};
    return out;
}

std::optional<cgroup_limit> cgroups::memory() const {
    const cgroup_chain& c = chain(cgroup_controller::memory);
    std::optional<cgroup_limit> best;
    const auto consider = [&](const std::string& folder, const char* name) {
        const std::string file = folder + name;
        const std::optional<u64> limit = number_in(file);
        if (!limit || *limit >= no_limit_v1) return;
        const u64 used =
            number_in(folder + (c.v2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
        const u64 cache =
            number_in(folder + "/memory.stat", c.v2 ? "inactive_file" : "total_inactive_file").value_or(0);
        keep_tighter(best, {*limit, used - std::min(used, cache), file});
    };
    for (const std::string& folder : c.folders) {
        consider(folder, c.v2 ? "/memory.max" : "/memory.limit_in_bytes");
        if (c.v2) consider(folder, "/memory.high");
    }
    return best;
}

std::optional<cgroup_limit> cgroups::pids() const {
    std::optional<cgroup_limit> best;
    for (const std::string& folder : chain(cgroup_controller::pids).folders)
        if (const std::optional<u64> limit = number_in(folder + "/pids.max"))  // "max": none
            keep_tighter(best,
                         {*limit, number_in(folder + "/pids.current").value_or(0), folder + "/pids.max"});
    return best;
}

std::optional<cgroup_cpu_limit> cgroups::cpu() const {
    const cgroup_chain& c = chain(cgroup_controller::cpu);
    std::optional<cgroup_cpu_limit> best;
    for (const std::string& folder : c.folders)
        if (auto own = quota_of(folder, c.v2); own && (!best || own->cpus < best->cpus))
            best = std::move(own);
    return best;
}

std::optional<cgroup_cpu_set> cgroups::cpu_set() const {
    const cgroup_chain& c = chain(cgroup_controller::cpuset);
    for (const std::string& folder : c.folders)
        for (const char* name :
             {c.v2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus", "/cpuset.cpus"}) {
            std::string cpus = read_file(folder + name).value_or("");
            cpus.resize(std::min(cpus.find('\n'), cpus.size()));
            if (!cpus.empty()) return cgroup_cpu_set{cpus, folder + name};
        }
    return std::nullopt;
}

u64 cgroups::throttled_ns() const {
    const cgroup_chain& c = chain(cgroup_controller::cpu);
    u64 sum = 0;
    // each cgroup counts only the throttling that its own quota has caused
    for (const std::string& folder : c.folders) {
        const u64 own =
            number_in(folder + "/cpu.stat", c.v2 ? "throttled_usec" : "throttled_time").value_or(0);
        sum += c.v2 ? own * 1000 : own;
    }
    return sum;
}

std::optional<u64> cgroups::oom_kills() const {
    const cgroup_chain& c = chain(cgroup_controller::memory);
    std::optional<u64> own;
    if (!c.folders.empty())
        own = number_in(c.folders.front() + (c.v2 ? "/memory.events" : "/memory.oom_control"), "oom_kill");
    return own ? own : number_in(root_ + "/proc/vmstat", "oom_kill");
}

bool cgroups::frozen() const {
    if (!unified_.empty() && number_in(unified_ + "/cgroup.events", "frozen").value_or(0) != 0) return true;
    const cgroup_chain& c = chain(cgroup_controller::freezer);
    if (c.v2 || c.folders.empty()) return false;
    const std::optional<std::string> state = read_file(c.folders.front() + "/freezer.state");
    return state && (state->starts_with("FROZEN") || state->starts_with("FREEZING"));
}

unsigned affine_cores() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

unsigned usable_cores() noexcept {
    const unsigned affine = affine_cores();
    try {
        const auto quota = cgroups::of().cpu();
        if (quota && quota->cpus < affine) return std::max(1U, static_cast<unsigned>(std::ceil(quota->cpus)));
    } catch (const std::exception&) {  // there is no memory for the text; the number from the affinity mask
                                       // is a valid result
    }
    return affine;
}

}  // namespace carousel
