#pragma once
// When all words of the control block are held against the protocol while frames move, and what of such looks
// stands. A look reads one word after the other, so a frame that moves meanwhile looks like damage. But what
// the protocol leaves between any two of its steps never does (tests/ring/test_block_check.cpp), wherever a
// process stands still or has died. So a finding that stands, word for word, through several looks one after
// the other is no frame on its way: frames that move have other numbers by then.
//
// Plain data: the engine asks it about fifty times a second.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "ring/block_check.hpp"

namespace carousel::supervisor {

class word_audit {
public:
    static constexpr u64 every_ns = ns_per_s;
    static constexpr u64 apart_ns = 15 * ns_per_ms;  ///< of the looks that must agree
    static constexpr u32 checks = 6;

    /// `at_deaths_alone`: for tests, none comes by the time that has passed.
    explicit word_audit(bool at_deaths_alone = false)
        : rest_ns_(at_deaths_alone ? 3600 * ns_per_s : every_ns) {}

    /// Is it time for a look?
    [[nodiscard]] bool due(u64 now) const noexcept { return now >= next_ns_; }
    /// Somebody has died: the next look is due now, or where some are under way behind these.
    void request_audit(u64 now) noexcept {
        audit_requested_ = seen_ != 0;
        if (!audit_requested_) next_ns_ = now;
    }
    /// There is nothing to be watched: counted from here.
    void restart(u64 now) noexcept {
        audit_requested_ = false;
        rest(now);
    }
    /// A look has found this. Returns what has stood through all of them; empty: nothing, or not yet.
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
    bool audit_requested_ = false;  ///< somebody has died while looks were under way
    std::vector<ring::finding> standing_;
    u32 seen_ = 0;
    u64 next_ns_ = 0;
};

}  // namespace carousel::supervisor
