#pragma once
// When anything last moved. Plain data: the engine feeds it with what it sees, about fifty times a second.

#include <algorithm>

#include "core/clock.hpp"

namespace carousel::supervisor {

class stall_watch {
public:
    /// `print` differs from the last one when something has moved. Whoever looks too seldom was stopped or
    /// starved itself, and has seen nothing in between: it begins anew.
    void add_sample(u64 print, u64 now) noexcept {
        const bool starved = now > seen_ns_ + ns_per_s;
        seen_ns_ = now;
        if (print == print_ && since_ns_ != 0 && !starved) return;
        print_ = print;
        since_ns_ = now;
    }
    /// So much of the time since the last look doesn't count: the run itself was stopped.
    void leave_out(u64 ns, u64 now) noexcept {
        if (since_ns_ != 0) since_ns_ = std::min(now, since_ns_ + ns);
    }
    /// There is nothing to be watched: counted from here.
    void restart(u64 now) noexcept { since_ns_ = excused_ns_ = now; }
    /// Somebody has a reason to wait. When that is over, others get a second to go on.
    void excuse(u64 now) noexcept { excused_ns_ = now; }
    /// Is the last excuse so young that nobody need be asked for one? Asking reads words of every process and
    /// /proc: a pipeline that is paused for hours is not asked with every look.
    [[nodiscard]] bool just_excused(u64 patience_ns, u64 now) const noexcept {
        return excused_ns_ != 0 && now < excused_ns_ + std::min(patience_ns, u64{ns_per_s}) / 8;
    }
    /// For how long nothing has moved.
    [[nodiscard]] u64 quiet_ns(u64 now) const noexcept {
        return since_ns_ != 0 && now > since_ns_ ? now - since_ns_ : 0;
    }
    /// Nothing has for so long, and nobody had a reason in the last second.
    [[nodiscard]] bool is_stalled(u64 patience_ns, u64 now) const noexcept {
        return quiet_ns(now) >= patience_ns && now >= excused_ns_ + std::min(patience_ns, u64{ns_per_s});
    }

private:
    u64 print_ = 0, since_ns_ = 0, seen_ns_ = 0, excused_ns_ = 0;
};

}  // namespace carousel::supervisor
