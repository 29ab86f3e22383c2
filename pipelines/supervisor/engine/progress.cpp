#include "supervisor/engine/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "ring/words.hpp"

namespace carousel::supervisor {
namespace {
constexpr u64 terminal_every_ns = 200 * ns_per_ms;
constexpr u64 line_every_ns = 2 * ns_per_s;
}  // namespace

u64 delivered(const run_setup& s, const shm::control_block& c) noexcept {
    u64 lowest = ~u64{0};
    for (u32 k = 0; k < s.stages.size(); ++k) {
        if (s.stages[k].has_output() || s.stages[k].spec.latest()) continue;
        for (u32 i = 0; i < std::min(c.stage[k].inputs, shm::max_inputs); ++i) {
            if (c.stage[k].input_link[i] >= shm::max_links) continue;
            const shm::link_block& l = c.link[c.stage[k].input_link[i]];
            // A closed group (an optional sink that has failed) is not waited for.
            const u32 group = c.stage[k].input_group[i];
            if (group < shm::max_blocking &&
                ring::group_word::of(ring::load(l.group_state[group])).state == ring::group_state::closed)
                continue;
            lowest = std::min(lowest, ring::load(l.tail));
        }
    }
    return lowest == ~u64{0} ? 0 : lowest;
}

void rate::sample(u64 count, u64 now) noexcept {
    if (at_ns_ == 0 || count < count_) {
        at_ns_ = now;
        count_ = count;
        return;
    }
    if (now - at_ns_ < ns_per_s) return;
    per_second_ = static_cast<f64>(count - count_) * 1e9 / static_cast<f64>(now - at_ns_);
    at_ns_ = now;
    count_ = count;
}

progress::progress(const run_setup& s, console& out) : setup_(&s), console_(&out), stages_(s.stages.size()) {}

void progress::tick(const shm::control_block& c, u64 restarts, const std::string& state, u64 now) {
    const u64 frames = delivered(*setup_, c);
    total_.sample(frames, now);
    for (u32 k = 0; k < stages_.size(); ++k) stages_[k].sample(ring::load(c.stage[k].counters.frames), now);
    if (setup_->quiet || now - shown_ns_ < (console_->terminal() ? terminal_every_ns : line_every_ns)) return;
    if (shown_ns_ == 0 && !console_->terminal()) {
        shown_ns_ = now;  // without a terminal the first line is printed when there is something to report
        return;
    }
    shown_ns_ = now;
    const std::string of = setup_->end == ring::end_unknown ? "" : fmt::format(" of {}", setup_->end);
    console_->status(fmt::format("{}: {}, {}{} frames, {:.1f} frames/s, {} restarts", setup_->name, state,
                                 frames, of, total_.per_second(), restarts));
}

}  // namespace carousel::supervisor
