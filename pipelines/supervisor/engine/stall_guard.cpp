#include "supervisor/engine/stall_guard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "supervisor/engine/lost_frame.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/watch.hpp"
#include "supervisor/stores/ledger_store.hpp"

namespace carousel::supervisor {

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

/// Called when no frame has advanced for a while. Returns a message if the cause is a frame that another host
/// keeps until the sinks here have it (release = "durable") but that can never be written here: both hosts
/// would wait for each other indefinitely.
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
        "frame {0} is lost: it is not in the files of {1}, and no ring has it any more. The host that sent "
        "it keeps it until {1} has written it (release = \"durable\"), and would wait indefinitely",
        lost->frame, lost->sink);
} catch (const error&) {  // the ledgers cannot be read now: checked again later
    return "";
}

}  // namespace carousel::supervisor
