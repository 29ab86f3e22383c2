#pragma once
// Estimates the clock of another host relative to the clock of this host, by PING and PONG.
//
// A reply contains the other clock's value at some moment between request and reply: the error of the offset
// is at most half the round-trip time, even if the two directions are asymmetric. After the reply the two
// clocks may drift apart, so the error of the estimate grows with time. A new reply replaces the estimate if
// the reply's error is not larger than the estimate's present error, so the fastest of many replies is kept
// until it is too old.

#include <optional>

#include "core/clock.hpp"

namespace carousel::hosts {

/// there = here + offset_ns, with an error of at most error_ns.
struct clock_relation {
    i64 offset_ns = 0;
    u64 error_ns = 0;
    [[nodiscard]] u64 here_from(u64 there_ns) const noexcept {
        return there_ns - static_cast<u64>(offset_ns);
    }
};

class clock_filter {
public:
    /// Upper bound of the drift between two clocks: quartz oscillators drift by 50 ppm each; more means that
    /// a clock is being adjusted.
    static constexpr u64 drift_per_million = 100;

    void answered(u64 asked_ns, u64 there_ns, u64 now) noexcept {
        if (asked_ns == 0 || asked_ns > now) return;
        ++answers_;
        const u64 half = (now - asked_ns) / 2 + 1;
        if (best_ && half > error_at(now)) return;
        // `there_ns` comes from a message and may have any value: the difference is computed in unsigned
        // arithmetic, which can't overflow.
        best_ = clock_relation{static_cast<i64>(there_ns - (asked_ns + half)), half};
        at_ns_ = now;
    }
    [[nodiscard]] std::optional<clock_relation> at(u64 now) const noexcept {
        if (!best_) return std::nullopt;
        return clock_relation{best_->offset_ns, error_at(now)};
    }
    [[nodiscard]] u64 answers() const noexcept { return answers_; }
    /// Discards the estimate, because another host may reply from now on.
    void forget() noexcept { *this = {}; }

private:
    [[nodiscard]] u64 error_at(u64 now) const noexcept {
        const u64 age = now > at_ns_ ? now - at_ns_ : 0;
        return best_->error_ns + age / 1'000'000 * drift_per_million +
               age % 1'000'000 * drift_per_million / 1'000'000;
    }
    std::optional<clock_relation> best_;
    u64 at_ns_ = 0, answers_ = 0;
};

}  // namespace carousel::hosts
