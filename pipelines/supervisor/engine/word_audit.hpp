#pragma once
// Decides when all words of the control block are checked against the protocol while frames advance, and
// which findings are confirmed. A check reads one word after the other, so a frame that advances during the
// check can appear as damage. But every state that the protocol leaves between two of its steps passes the
// check (tests/ring/test_block_check.cpp), regardless of the step at which a process has stopped or died. So
// a finding that is identical, word for word, in several consecutive checks cannot come from an advancing
// frame, whose words would contain other numbers by then.
//
// Plain data: the engine calls it about fifty times per second.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "ring/check/block_check.hpp"

namespace carousel::supervisor {

class word_audit {
public:
    static constexpr u64 every_ns = ns_per_s;
    static constexpr u64 apart_ns = 15 * ns_per_ms;  ///< interval between the checks that must agree
    static constexpr u32 checks = 6;

    /// `at_deaths_alone`: for tests; no check is due merely because time has passed.
    explicit word_audit(bool at_deaths_alone = false)
        : rest_ns_(at_deaths_alone ? 3600 * ns_per_s : every_ns) {}

    /// True if a check is due.
    [[nodiscard]] bool due(u64 now) const noexcept { return now >= next_ns_; }
    /// To be called after the death of a process: the next check is due now, or, if a series of checks is in
    /// progress, after that series.
    void request_audit(u64 now) noexcept {
        audit_requested_ = seen_ != 0;
        if (!audit_requested_) next_ns_ = now;
    }
    /// To be called if there is nothing to watch: the time starts again from `now`.
    void restart(u64 now) noexcept {
        audit_requested_ = false;
        rest(now);
    }
    /// Adds the findings of a check. Returns the findings that are in all checks of the series; empty: there
    /// are none, or the series is not complete.
    [[nodiscard]] std::vector<ring::finding> add_sample(std::vector<ring::finding> found, u64 now) {
        if (seen_ == 0)
            standing_ = std::move(found);
        else
            std::erase_if(standing_, [&](const ring::finding& f) {
                return std::find(found.begin(), found.end(), f) == found.end();
            });
        if (standing_.empty()) {
            rest(now);
            return {};
        }
        next_ns_ = now + apart_ns;
        if (++seen_ < checks) return {};
        std::vector<ring::finding> stood = std::move(standing_);
        rest(now);
        return stood;
    }

private:
    void rest(u64 now) noexcept {
        standing_.clear();
        seen_ = 0;
        next_ns_ = std::exchange(audit_requested_, false) ? now : now + rest_ns_;
    }
    u64 rest_ns_;
    bool audit_requested_ = false;  ///< a process died during a series of checks
    std::vector<ring::finding> standing_;
    u32 seen_ = 0;
    u64 next_ns_ = 0;
};

}  // namespace carousel::supervisor
