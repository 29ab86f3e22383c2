#include "supervisor/engine/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/console.hpp"
#include "ring/words.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/watch.hpp"
#include "supervisor/stores/ledger_store.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 terminal_every_ns = 200 * ns_per_ms;
constexpr u64 line_every_ns = 2 * ns_per_s;

/// True if the frame has left all rings that the stage reads. A damaged tail reads as 0.
bool have_passed(const shm::stage_block& stage, const shm::control_block& c, u64 frame) noexcept {
    for (u32 i = 0; i < std::min(stage.inputs, shm::max_inputs); ++i)
        if (stage.input_link[i] >= shm::max_links || ring::load(c.link[stage.input_link[i]].tail) <= frame)
            return false;
    return true;
}

}  // namespace

u64 delivered(const run_setup& s, const shm::control_block& c) noexcept {
    u64 lowest = ~u64{0};
    for (u32 k = 0; k < s.stages.size(); ++k) {
        if (!s.stages[k].is_sink() || s.stages[k].spec.latest()) continue;
        for (u32 i = 0; i < std::min(c.stage[k].inputs, shm::max_inputs); ++i) {
            if (c.stage[k].input_link[i] >= shm::max_links) continue;
            const shm::link_block& l = c.link[c.stage[k].input_link[i]];
            // Rings do not wait for a closed group (an optional sink that has failed).
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
        // without a terminal, no line is printed at the very start, when there is nothing to report
        shown_ns_ = now;
        return;
    }
    shown_ns_ = now;
    const std::string of = setup_->end == ring::end_unknown ? "" : fmt::format(" of {}", setup_->end);
    console_->status(fmt::format("{}: {}, {}{} frames, {:.1f} frames/s, {} restarts", setup_->name, state,
                                 frames, of, total_.per_second(), restarts));
}

std::optional<block_damage> stall_guard::watch(u64 now) {
    const shm::control_block& c = block_->block();
    u64 print = supervisor::fingerprint(*seats_);
    const auto mix = [&](u64 value) { print = (print ^ value) * 0x100'0000'01b3ULL; };
    for (u32 k = 0; k < block_->published().links; ++k) {
        mix(ring::load(c.link[k].tail));
        mix(ring::load(c.link[k].committed));
    }
    for (u32 k = 0; k < block_->published().stages; ++k) mix(ring::load(c.stage[k].counters.frames));
    stall_.leave_out(seats_->groups.consume_uncounted_ns(), now);
    stall_.add_sample(print, now);
    const u64 pace = setup_->fps > 0 ? static_cast<u64>(2e9 / setup_->fps) : 0;
    if (setup_->stall_timeout_ns() == 0 || stall_.quiet_ns(now) < setup_->stall_timeout_ns() + pace) {
        if (stall_.quiet_ns(now) == 0) reason_.clear();
        return {};
    }
    if (stall_.just_excused(setup_->stall_timeout_ns(), now)) return {};
    if (const std::string why = undeliverable(); !why.empty()) {
        stall_.restart(now);
        seats_->fail("carousel", why, exit_code::stage_failed);
        return {};
    }
    if (const std::string why = supervisor::stall_reason(*seats_, now); !why.empty()) {
        if (why != reason_)
            seats_->log_line(fmt::format("no frame has moved for {:.1f} s: {}",
                                         static_cast<f64>(stall_.quiet_ns(now)) / 1e9, why));
        reason_ = why;
        stall_.excuse(now);
        return {};
    }
    if (!stall_.is_stalled(setup_->stall_timeout_ns(), now)) return {};
    ++facts_->repairs.stalls;
    const auto found = block_->check(true);
    return block_damage{
        fmt::format("no frame has moved for {:.1f} s, and no stage has a reason to wait; {}",
                    static_cast<f64>(stall_.quiet_ns(now)) / 1e9,
                    found.empty() ? "all words of the control block are valid, but no frame moves"
                                  : findings_text(found)),
        found};
}

/// Called when no frame has advanced for a while. Returns a message if another host keeps a frame until the
/// sinks here have it (release = "durable"), but this host has lost the frame and cannot deliver it: both
/// hosts would wait for each other indefinitely.
std::string stall_guard::undeliverable() const try {
    const bool kept_by_receiver =
        std::any_of(setup_->stages.begin(), setup_->stages.end(), [&](const auto& st) {
            return st.receives() && is_sent_durably(setup_->directory, st.spec.name, run_id_);
        });
    if (!kept_by_receiver) return "";
    const auto lost = find_lost_frame(*setup_, block_->published(), block_->block(), [&] {
        return find_undelivered_here(*setup_, block_->published().first_ring_sequence);
    });
    if (!lost) return "";
    return fmt::format(
        "frame {0} is lost: it is not in the files of {1}, and no ring has it any more. The sending host "
        "waits until {1} has written the frame (release = \"durable\"), which can't happen any more",
        lost->frame, lost->sink);
} catch (const error&) {  // the ledgers cannot be read now; this check is repeated later
    return "";
}

// A sink marks a frame in its ledger before the frame becomes DONE; the tail passes the frame only after
// that. Therefore a frame that a sink has marked after the first read of the ledgers is found marked in the
// second read.
std::optional<telemetry::undelivered_frame> find_lost_frame(
    const run_setup& s, const shm::control_block& made, const shm::control_block& c,
    const std::function<telemetry::undelivered_frame()>& find_undelivered) {
    const telemetry::undelivered_frame undelivered = find_undelivered();
    for (u32 k = 0; k < s.stages.size(); ++k) {
        if (s.stages[k].spec.name != undelivered.sink) continue;
        if (!have_passed(made.stage[k], c, undelivered.frame)) return std::nullopt;
        const telemetry::undelivered_frame again = find_undelivered();
        if (again.frame != undelivered.frame || again.sink != undelivered.sink) return std::nullopt;
        return undelivered;
    }
    return std::nullopt;
}

}  // namespace carousel::supervisor
