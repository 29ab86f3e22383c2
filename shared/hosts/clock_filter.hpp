#pragma once
// What one host knows of the other one's clock, by PING and PONG.
//
// An answer says what the other clock showed at some moment between question and answer: the offset is off by
// half that time at most, however unequal the two ways are. From then on the two clocks may drift apart. So
// the error of what is known grows with time, and an answer counts when its own error is the smaller one: of
// many answers the quickest, until it is too old.

#include <optional>

#include "core/clock.hpp"

namespace carousel::hosts {

/// there = here + offset_ns, give or take error_ns.
struct clock_relation {
    i64 offset_ns = 0;
    u64 error_ns = 0;
    [[nodiscard]] u64 here_from(u64 there_ns) const noexcept {
        return there_ns - static_cast<u64>(offset_ns);
    }
};

class clock_filter {
public:
    /// Two clocks drift apart by no more: quartz by 50 in a million each, more is a clock that is being set.
    static constexpr u64 drift_per_million = 100;

    void answered(u64 asked_ns, u64 there_ns, u64 now) noexcept {
        if (asked_ns == 0 || asked_ns > now) return;
        ++answers_;
        const u64 half = (now - asked_ns) / 2 + 1;
        if (best_ && half > error_at(now)) return;
        // Both are numbers of a message, of any size: the difference is taken where it can't overflow.
        best_ = clock_relation{static_cast<i64>(there_ns - (asked_ns + half)), half};
        at_ns_ = now;
    }
    [[nodiscard]] std::optional<clock_relation> at(u64 now) const noexcept {
        if (!best_) return std::nullopt;
        return clock_relation{best_->offset_ns, error_at(now)};
    }
    [[nodiscard]] u64 answers() const noexcept { return answers_; }
    /// Another host may answer from now on.
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
