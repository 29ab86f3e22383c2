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
    // The comparison uses the clock that is never reset: after an innocent process has been replaced, the
    // process at fault has the oldest frame.
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

}  // namespace carousel::supervisor
