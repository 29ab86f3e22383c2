// seat_keeper: why a run may stand still. What this process knows by itself (states of seats, processes, delays) goes before what
// the control block says, since that may be what is broken. A reason that only the block gives is believed as far as it is
// possible: its clock began in the life of the process, a job of that process is in work, and its own deadline has not passed.
#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "shm/process_id.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 slack_ns = 2 * ns_per_s;  ///< until a deadline that has passed is seen and its kill has told

/// Is `since` the begin of something that this process does now, and that its deadline still allows?
bool believable(u64 since, u64 spawned_ns, u64 timeout_ns, u64 now) noexcept {
    return since != 0 && since <= now && since >= spawned_ns && (timeout_ns == 0 || now - since <= timeout_ns + slack_ns);
}

}  // namespace

void seat_keeper::tell_known(ring::known_run& known) const {
    const auto add = [&](const life& l, bool current, bool standby) {
        // A fenced one's entry may be another's by now; its epoch may still stand on words.
        known.lives.push_back(
            {l.who.seat, l.fenced ? shm::none : l.who.entry, l.who.epoch, static_cast<u32>(l.pid), current, standby});
    };
    for (const auto& s : seats_) {
        u32 epoch = shm::none;
        if (s->heir) {
            known.lives.push_back({s->index, s->heir.entry, s->heir.epoch, 0, true, false});
            epoch = s->heir.epoch;
        } else if (s->now) {
            epoch = s->now->who.epoch;
        }
        known.epochs.push_back(epoch);
        if (s->now) add(*s->now, !s->heir && !s->now->doomed, false);
        if (s->spare) add(*s->spare, false, true);
        for (const auto& l : s->gone) add(*l, false, false);
    }
}

// A job of its epoch is in work, and one of the process's clocks says since when, within the frame's deadline.
bool seat_keeper::is_at_work(const seat& s, u64 now) const noexcept {
    const process_view v = view(s, now);
    const u64 spawned = std::min(s.now->spawned_ns, now);
    if (!v.in_hand) return false;
    for (const u64 since : {v.processing_ns, v.device_ns, v.finishing_ns})
        if (believable(since, spawned, v.frame_timeout_ns, now)) return true;
    return believable(full_disk_since_ns(*c_, s), spawned, 0, now);
}

std::string seat_keeper::reason_of(const seat& s, u64 now) const {
    const u64 in_state = now > s.machine.since_ns() ? now - s.machine.since_ns() : 0;
    switch (s.machine.state()) {
        case seat_state::starting:
            if (in_state > setup_->start_timeout_ns + slack_ns) return "";
            return fmt::format("{} is starting", s.label);
        case seat_state::backoff:
            return in_state > longest_delay_ns + slack_ns ? "" : fmt::format("{} rests before it is started again", s.label);
        case seat_state::stopped:
            return fmt::format("{} is held (`carousel cont {}` lets it go on)", s.label, s.label);
        case seat_state::down:
            return fmt::format("{} is down (`carousel up {}` starts it)", s.label, s.label);
        case seat_state::stopping:
            return in_state > setup_->stop_timeout_ns ? "" : fmt::format("{} is being taken down", s.label);
        case seat_state::running:
            break;
        case seat_state::failed:
        case seat_state::done:
            return "";
    }
    if (!s.now || s.now->ended) return "";
    const life& l = *s.now;
    const bool stopped = shm::is_stopped(l.pid);
    if ((l.tool || l.by_hand) && stopped) return fmt::format("{} (pid {}) is stopped by the tool in front of it", s.label, l.pid);
    if (stopped && !heart_is_late(view(s, now), now)) return fmt::format("{} (pid {}) is stopped from outside", s.label, l.pid);
    if (is_at_work(s, now))
        return full_disk_since_ns(*c_, s) != 0 ? fmt::format("{} waits for room on its disk", s.label)
                                               : fmt::format("{} is at work on a frame", s.label);
    return "";
}

std::string seat_keeper::stated_reason(u64 now) const {
    if (renewing_) return "the MPS domain is being renewed";
    for (const auto& s : seats_) {
        const stage_setup& st = setup_->stages[s->stage];
        if (st.latest) continue;  // holds nobody up
        if (std::string why = reason_of(*s, now); !why.empty()) return why;
        // Buffers of a process that has been killed and has not gone: problems.hpp names it.
        const bool unfenced =
            std::any_of(s->gone.begin(), s->gone.end(), [](const auto& l) { return !l->ended && l->pid > 0 && l->kill_sent; });
        if (unfenced && count_quarantined(*s) > 0)
            return fmt::format("{} waits for the end of a process that it has replaced", s->label);
    }
    return "";
}

}  // namespace carousel::supervisor
