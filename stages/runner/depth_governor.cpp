#include "stages/runner/depth_governor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace carousel::stages {
namespace {

using telemetry::depth_reason;

constexpr f64 switch_ns = 140'000;  ///< one context switch, measured on an H200
/// The time for a wake-up, a launch and the waits between them, doubled as a margin.
constexpr f64 hop_ns = 100'000;
constexpr f64 enough = 0.95, at_least = 0.93, at_most = 0.97;
constexpr u32 patience = 3;
/// One frame runs on the device while one is queued; with fewer frames the device would wait for the host.
constexpr u32 fewest = 2;
/// The number of frames by which the output may run ahead of the frames in flight: enough to hide a reader's
/// wake-up, and not so large that a frame waits longer.
constexpr u32 ahead = 2;

depth_reason planned_reason(const depth_rule& r) {
    if (r.lanes_given) return depth_reason::given;
    if (r.finish_pool) return depth_reason::finishing;
    if (r.latency != latency_request::balanced) return depth_reason::requested;
    return r.sharing == device_sharing::cpu ? depth_reason::cores : depth_reason::unmeasured;
}

}  // namespace

depth_governor::depth_governor(const depth_rule& rule, u32 lanes, u32 window)
    : lanes_(std::max(1U, lanes)),
      window_(window),
      chooses_(planned_reason(rule) == depth_reason::unmeasured),
      window_moves_(!rule.window_given && window > 0),
      when_measured_(rule.sharing == device_sharing::turns ? depth_reason::turns : depth_reason::hops),
      overhead_ns_(rule.sharing == device_sharing::turns ? switch_ns * std::max(2U, rule.contexts) : hop_ns) {
    now_.lanes = lanes_;
    now_.window = window_;
    now_.why = planned_reason(rule);
    now_.contexts = rule.contexts;
}

// Returns the smallest number of lanes that achieves `share` of the gain of all lanes.
u32 depth_governor::smallest_for(f64 share, f64 work_ns) const {
    const auto gain = [&](u32 lanes) { return lanes * work_ns / (lanes * work_ns + overhead_ns_); };
    const f64 wanted = share * gain(lanes_);
    u32 lanes = std::min(fewest, lanes_);
    while (lanes < lanes_ && gain(lanes) < wanted) ++lanes;
    return lanes;
}

bool depth_governor::update(u64 work_ns) {
    if (!chooses_ || work_ns == 0) return false;
    const auto work = static_cast<f64>(work_ns);
    const bool first = now_.why == depth_reason::unmeasured;
    const bool fits = now_.lanes >= smallest_for(at_least, work) && now_.lanes <= smallest_for(at_most, work);
    wanted_updates_ = fits && !first ? 0 : wanted_updates_ + 1;
    if (wanted_updates_ < patience) return false;
    wanted_updates_ = 0;
    take(fits ? now_.lanes : smallest_for(enough, work), when_measured_, work_ns);
    return true;
}

void depth_governor::take(u32 lanes, depth_reason why, u64 work_ns) {
    now_.lanes = lanes;
    if (window_moves_) now_.window = std::min(window_, lanes + ahead);
    now_.why = why;
    now_.work_ns = static_cast<u32>(std::min<u64>(work_ns, ~u32{0}));
}

// Skips the frames of the previous round that are still in flight, and the first frames of each round. The
// mean is used, because a thread that wakes late measures one span that is too long, followed by spans that
// are too short. The longest quarter of the spans is left out, because these spans include waits for other
// contexts that share the GPU.
bool reach_choice::add(bool by_copy, u64 span_ns) {
    if (!trial_.load(std::memory_order_relaxed) || by_copy != (of_round() == way::copy)) return false;
    if (passed_ < passed_over) {
        ++passed_;
        return false;
    }
    spans_.push_back(span_ns);
    if (spans_.size() < frames_a_round) return false;
    std::sort(spans_.begin(), spans_.end());
    constexpr u32 counted = frames_a_round - frames_a_round / 4;
    const u64 mean = std::accumulate(spans_.begin(), spans_.begin() + counted, u64{0}) / counted;
    u64& best = best_[static_cast<std::size_t>(of_round())];
    best = std::min(best, mean);
    spans_.clear();
    passed_ = 0;
    ++round_;
    if (round_ < rounds) {
        now_.store(of_round(), std::memory_order_relaxed);
        return false;
    }
    now_.store(best_[1] < best_[0] - best_[0] / 32 ? way::copy : way::mapping, std::memory_order_relaxed);
    trial_.store(false, std::memory_order_release);
    return true;
}

telemetry::reach_state reach_choice::state() const noexcept {
    if (!peer_) return telemetry::reach_state::none;
    if (trial_.load(std::memory_order_acquire)) return telemetry::reach_state::trying;
    return next() == way::copy ? telemetry::reach_state::copy : telemetry::reach_state::mapping;
}

std::string reach_choice::report() const {
    return fmt::format(
        "rings on another GPU are reached {}: {:.3f} ms per frame through the mapping, {:.3f} ms by a copy",
        next() == way::copy ? "by a copy" : "through the mapping", static_cast<f64>(best_[0]) / 1e6,
        static_cast<f64>(best_[1]) / 1e6);
}

}  // namespace carousel::stages
