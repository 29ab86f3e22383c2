#include "supervisor/policy/clocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"

namespace carousel::supervisor {
namespace {

bool late(u64 since_ns, u64 base_ns, u64 limit_ns, u64 now) noexcept {
    return limit_ns != 0 && age_ns(since_ns, base_ns, now) > limit_ns;
}

// A stopped process is judged only by its heartbeat, because its other clocks keep running although the
// process is not at fault.
offence judge_one(const process_view& p, u64 now) noexcept {
    if (p.state != seat_state::running || p.tool) return offence::none;
    if (heart_is_late(p, now) && (p.has_frame || p.frames_wait)) return offence::heart;
    if (p.stopped || p.pause_ns != 0) return offence::none;
    if (p.open && late(p.processing_ns, p.base_ns, p.frame_timeout_ns, now)) return offence::processing;
    if (p.has_frame && late(p.finishing_ns, p.base_ns, p.frame_timeout_ns, now)) return offence::finishing;
    if (p.submitted && late(p.device_ns, std::max(p.base_ns, p.device_base_ns), p.frame_timeout_ns, now))
        return offence::device;
    return offence::none;
}

}  // namespace

u64 age_ns(u64 since_ns, u64 base_ns, u64 now) noexcept {
    const u64 since = std::max(since_ns, base_ns);
    return since_ns == 0 || now <= since ? 0 : now - since;
}

bool heart_is_late(const process_view& p, u64 now) noexcept {
    return late(p.heartbeat_ns, p.base_ns, p.heart_timeout_ns, now);
}

std::vector<offence> judge(std::span<const process_view> all, u64 now) {
    std::vector<offence> out;
    out.reserve(all.size());
    for (const process_view& p : all) out.push_back(judge_one(p, now));
    // Per GPU, only the process whose frame has been on the device for the longest time keeps its verdict.
    // The comparison uses device_ns, which is never reset (device_base_ns is not considered). After an
    // innocent process has been replaced, the process at fault therefore has the oldest frame.
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (out[k] != offence::device || all[k].device == shm::none) continue;
        for (std::size_t o = 0; o < all.size(); ++o) {
            const bool rival = o != k && out[o] == offence::device && all[o].device == all[k].device;
            if (rival &&
                (all[o].device_ns > all[k].device_ns || (all[o].device_ns == all[k].device_ns && o > k)))
                out[o] = offence::none;
        }
    }
    return out;
}

std::string describe(offence o, const process_view& p) {
    const auto longer = [&](const char* what) {
        return fmt::format("{} takes longer than {}frame_timeout_ms = {}", what,
                           p.first_frame ? "first_" : "", p.frame_timeout_ns / ns_per_ms);
    };
    switch (o) {
        case offence::heart:
            return "it does not respond while frames wait for it";
        case offence::processing:
            return longer("process() of a frame");
        case offence::finishing:
            return longer("finish() of a frame");
        case offence::device:
            return longer("the GPU work of a frame");
        case offence::none:
            break;
    }
    return "";
}

void uncounted_time::add(u64 from, u64 until, u64 ns) {
    if (until <= from || ns == 0) return;
    const u64 sum = points_.empty() ? 0 : points_.back().sum;
    if (points_.empty() || points_.back().at < from) points_.push_back({from, sum});
    points_.push_back({until, sum + std::min(ns, until - from)});
    if (points_.size() <= most_points) return;
    std::size_t kept = 0;  // of the older half, only every second point is kept
    for (std::size_t k = 0; k < points_.size(); ++k)
        if (k >= points_.size() / 2 || k % 2 == 0) points_[kept++] = points_[k];
    points_.resize(kept);
}

u64 uncounted_time::sum_at(u64 time) const noexcept {
    const auto after = std::upper_bound(points_.begin(), points_.end(), time,
                                        [](u64 t, const point& p) { return t < p.at; });
    if (after == points_.begin()) return 0;
    const point& a = *(after - 1);
    if (after == points_.end()) return a.sum;
    const f64 part = static_cast<f64>(time - a.at) / static_cast<f64>(after->at - a.at);
    return a.sum + static_cast<u64>(part * static_cast<f64>(after->sum - a.sum));
}

u64 uncounted_time::between(u64 from, u64 until) const noexcept {
    return until <= from ? 0 : sum_at(until) - sum_at(from);
}

}  // namespace carousel::supervisor
