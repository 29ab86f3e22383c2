#include "supervisor/processes/cgroup_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "os/table.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 normal_tick_ns = 20 * ns_per_ms;
constexpr u64 late_tick_ns = 3 * normal_tick_ns;
constexpr u64 window_length_ns = 100 * ns_per_ms;  ///< the usual period of a CPU quota
/// the groups are read again at this interval, because a process may be moved, and a quota set, at any time
constexpr u64 groups_every_ns = ns_per_s;
constexpr u64 claim_within_ns = 5 * ns_per_s;
/// At least 1/least_share of every interval counts, so every deadline is reached in the end.
constexpr u64 least_share = 100;

}  // namespace

cgroup_watch::cgroup_watch(std::string root) : root_(std::move(root)), groups_(cgroups::of(0, root_)) {
    oom_seen_ = groups_.oom_kills();
}

void cgroup_watch::tick(u64 now) {
    if (ticked_ns_ == 0) ticked_ns_ = window_ns_ = second_ns_ = now;
    const u64 gap = now - std::min(now, ticked_ns_);
    ticked_ns_ = now;
    if (gap > late_tick_ns) starved_ns_ += gap - normal_tick_ns;
    if (now < window_ns_ + window_length_ns && gap <= late_tick_ns) return;
    u64 stopped = starved_ns_;
    if (!quota_file_.empty()) {
        const u64 throttled = groups_.throttled_ns();
        stopped = std::max(stopped, throttled - std::min(throttled, throttled_ns_));
        throttled_ns_ = throttled;
    }
    const u64 length = now - window_ns_;
    stopped = std::min(stopped, length - length / least_share);
    uncounted_.add(window_ns_, now, stopped);
    untaken_ns_ += stopped;
    stopped_ns_ += stopped;
    window_ns_ = now;
    starved_ns_ = 0;
    if (now >= second_ns_ + ns_per_s) {
        const u64 percent = stopped_ns_ * 100 / (now - second_ns_);
        if (!reported_ && !quota_file_.empty() && percent > 50) {
            reported_ = true;
            log_text_ = fmt::format(
                "the CPU quota {} stops this run for {} % of the time, so deadlines count only the rest",
                quota_file_, percent);
        }
        second_ns_ = now;
        stopped_ns_ = 0;
    }
    if (now < checked_ns_ + (gap > late_tick_ns ? groups_every_ns / 5 : groups_every_ns)) return;
    checked_ns_ = now;
    groups_ = cgroups::of(0, root_);
    const auto quota = groups_.cpu();
    const std::string file = quota ? quota->file : "";
    if (file != quota_file_)
        throttled_ns_ = groups_.throttled_ns();  // the groups have changed, and every group has its own
                                                 // counter
    quota_file_ = file;
    read_oom(now);
}

u64 cgroup_watch::consume_uncounted_ns() noexcept { return std::exchange(untaken_ns_, 0); }
std::string cgroup_watch::log_text() { return std::exchange(log_text_, ""); }

void cgroup_watch::read_oom(u64 now) {
    const std::optional<u64> count = groups_.oom_kills();
    if (count && oom_seen_ && *count > *oom_seen_) {
        oom_unclaimed_ += *count - *oom_seen_;
        oom_at_ns_ = now;
    } else if (now > oom_at_ns_ + claim_within_ns) {
        oom_unclaimed_ = 0;  // no stage's death was attributed to the kill in time, so the kill has ended a
                             // process that is not a stage
    }
    oom_seen_ = count;
}

bool cgroup_watch::consume_oom_kill(u64 now) {
    read_oom(now);
    if (oom_unclaimed_ == 0) return false;
    --oom_unclaimed_;
    return true;
}

std::string cgroup_watch::memory_text() const {
    const auto limit = groups_.memory();
    return limit ? fmt::format("{} allows {}", limit->file, human_bytes(limit->limit)) : "";
}

}  // namespace carousel::supervisor
