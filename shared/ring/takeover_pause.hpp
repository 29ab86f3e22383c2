#pragma once
// After a takeover old processes of the run end, and new standbys open their devices. Both hold locks of the
// GPU's driver for tens of milliseconds, and a process that needs such a lock waits that long. So a process
// that has just taken over puts off the calls that take these locks and can wait.
//
// The supervisor reports the changes in the entries: DOOMED until an old process is fenced, STARTING or an
// unready STANDBY until a new one has opened its device. If the supervisor dies, the entries stay as they
// are, so the pause has a limit.

#include "core/clock.hpp"
#include "ring/participants.hpp"

namespace carousel::ring {

/// Used by one thread.
class takeover_pause {
public:
    /// `entry` and `domain` (the generation of its MPS domain; 0: none) of this process.
    takeover_pause(u32 entry, u32 domain) noexcept : entry_(entry), domain_(domain) {}
    void begin(u64 now) noexcept {
        until_ns_ = now + longest_ns;
        next_check_ns_ = now;
    }
    /// True while other processes of the run end or open their devices, for up to 2 s.
    [[nodiscard]] bool is_on(const shm::control_block& c, u64 now) noexcept {
        if (now >= until_ns_) return false;
        if (now < next_check_ns_) return on_;
        next_check_ns_ = now + check_every_ns;
        return on_ = others_come_or_go(c, entry_, domain_);
    }
    [[nodiscard]] bool is_on(const shm::control_block& c) noexcept {
        return until_ns_ != 0 && is_on(c, now_ns());
    }

private:
    static constexpr u64 longest_ns = 2 * ns_per_s, check_every_ns = ns_per_ms;
    u32 entry_, domain_;
    u64 until_ns_ = 0, next_check_ns_ = 0;
    bool on_ = false;
};

}  // namespace carousel::ring
