#pragma once
// Records when the run last made progress. Plain data: the engine adds samples about fifty times per second.

#include <algorithm>

#include "core/clock.hpp"

namespace carousel::supervisor {

class stall_watch {
public:
    /// `print` differs from that of the last sample if a frame has advanced. A gap of more than 1 s between
    /// samples means that this process was itself stopped or starved and has missed events; therefore the
    /// time without progress starts again.
    void add_sample(u64 print, u64 now) noexcept {
        const bool starved = now > seen_ns_ + ns_per_s;
        seen_ns_ = now;
        if (print == print_ && since_ns_ != 0 && !starved) return;
        print_ = print;
        since_ns_ = now;
    }
    /// Excludes `ns` of the time since the last progress: the run itself was stopped for that long.
    void leave_out(u64 ns, u64 now) noexcept {
        if (since_ns_ != 0) since_ns_ = std::min(now, since_ns_ + ns);
    }
    /// To be called if there is nothing to watch: the time without progress starts again from `now`.
    void restart(u64 now) noexcept { since_ns_ = excused_ns_ = now; }
    /// To be called if a stage has a reason to wait. After that reason has ended, the other stages get one
    /// second to continue.
    void excuse(u64 now) noexcept { excused_ns_ = now; }
    /// True if the last excuse is so recent that no new one is needed. Finding an excuse requires reading
    /// words of every process and /proc, so a pipeline that is paused for hours is not checked in every tick.
    [[nodiscard]] bool just_excused(u64 patience_ns, u64 now) const noexcept {
        return excused_ns_ != 0 && now < excused_ns_ + std::min(patience_ns, u64{ns_per_s}) / 8;
    }
    /// Time without progress.
    [[nodiscard]] u64 quiet_ns(u64 now) const noexcept {
        return since_ns_ != 0 && now > since_ns_ ? now - since_ns_ : 0;
    }
    /// True if there was no progress for `patience_ns`, and no excuse in the last second.
    [[nodiscard]] bool is_stalled(u64 patience_ns, u64 now) const noexcept {
        return quiet_ns(now) >= patience_ns && now >= excused_ns_ + std::min(patience_ns, u64{ns_per_s});
    }

private:
    u64 print_ = 0, since_ns_ = 0, seen_ns_ = 0, excused_ns_ = 0;
};

}  // namespace carousel::supervisor
