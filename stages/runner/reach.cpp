#include "stages/runner/reach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace carousel::stages {

// Skips the frames of the previous round that are still in flight and the first ones of a round. A thread
// that wakes late measures one long span and then short ones, so the mean is used, but without the longest
// quarter, in which contexts that share a GPU have waited for each other.
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
