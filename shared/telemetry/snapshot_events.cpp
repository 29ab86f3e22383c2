#include "telemetry/snapshot_events.hpp"

#include <fmt/format.h>

#include <utility>

namespace carousel::telemetry {
namespace {
constexpr std::size_t max_events = 500;
using ring::entry_state;
using ring::requested_end;

/// Returns the request that caused the last exit of a seat, based on the cause that the supervisor reports.
requested_end requested_end_named(const std::string& last_exit) {
    return last_exit == "down"        ? requested_end::down
           : last_exit == "restarted" ? requested_end::restart
                                      : requested_end::none;
}
}  // namespace

std::string describe(const crash& c) {
    if (c.asked != requested_end::none)
        return fmt::format("{} (pid {}) was ended by `carousel {}`", c.label, c.old_pid,
                           c.asked == requested_end::down ? "down" : "restart");
    return fmt::format("{} (pid {}) died{}{}", c.label, c.old_pid, c.how.empty() ? "" : ": ", c.how);
}

std::string describe_vacancy(const crash& c, const std::string& state) {
    if (state == "failed")
        return fmt::format("it has failed and is not restarted (`carousel up {}` starts it)", c.label);
    if (state == "down" || c.asked == requested_end::down)
        return fmt::format("the stages that need its frames wait until `carousel up {}`", c.label);
    if (state == "backoff")
        return "its successor is started after a delay, because it died before it delivered a frame";
    return "its successor is being started";
}

void event_tracker::add(run_event e) {
    events_.push_back(std::move(e));
    if (events_.size() > max_events) events_.pop_front();
}

void event_tracker::clear() { *this = {}; }

void event_tracker::merge(event_tracker& from) {
    for (run_event& e : from.events_) add(std::move(e));
    from.events_.clear();
    for (crash& c : from.deaths_) deaths_.push_back(std::move(c));
    from.deaths_.clear();
    if (!from.crash_) return;
    const bool same = crash_ && crash_->died_ns == from.crash_->died_ns && crash_->seat == from.crash_->seat;
    const crash known = same ? *crash_ : *from.crash_;  // explain() has completed the crash here, but not in
                                                        // `from`
    crash_ = from.crash_;
    crash_->how = known.how;
    crash_->asked = known.asked;
}

std::vector<crash> event_tracker::take_deaths() { return std::exchange(deaths_, {}); }

void event_tracker::note_death(const snapshot& s, u32 seat, u32 pid) {
    crash c;
    c.died_ns = s.taken_ns;
    c.stage = s.seats[seat].stage;
    c.seat = seat;
    c.old_pid = pid;
    c.turn = s.seats[seat].turn;
    c.label = s.seat_label(seat);
    c.asked = ring::requested_end_of(s.seats[seat].exit_note);
    c.how = describe_exit_note(s.seats[seat].exit_note);
    add({s.taken_ns, c.asked == requested_end::none ? event_kind::bad : event_kind::warning, c.stage,
         describe(c)});
    deaths_.push_back(c);
    crash_ = std::move(c);
    seats_[seat].died_ns = s.taken_ns;
}

void event_tracker::compare_seat(const snapshot& s, u32 seat) {
    const seat_view& now = s.seats[seat];
    seat_memory& before = seats_[seat];
    const bool was_there =
        before.pid != 0 && (before.state == entry_state::live || before.state == entry_state::starting);
    const bool gone =
        now.epoch != before.epoch || now.state == entry_state::doomed || now.state == entry_state::fenced;
    if (was_there && gone && !s.ended()) note_death(s, seat, before.pid);
    const bool is_live = now.state == entry_state::live;
    if (is_live && (before.state != entry_state::live || before.epoch != now.epoch)) {
        const std::string label = s.seat_label(seat);
        // The process's own time stamp is exact; the time of a death is known only within the interval
        // between two snapshots.
        const u64 back_ns = now.live_since_ns > before.died_ns && now.live_since_ns < s.taken_ns
                                ? now.live_since_ns
                                : s.taken_ns;
        if (before.died_ns == s.taken_ns) {  // both events are between two snapshots, so the duration is
                                             // unknown
            add({s.taken_ns, event_kind::good, now.stage,
                 fmt::format("{} is back as pid {} (epoch {})", label, now.pid, now.epoch)});
        } else if (before.died_ns != 0) {
            add({s.taken_ns, event_kind::good, now.stage,
                 fmt::format("{} is back as pid {} after {} (epoch {})", label, now.pid,
                             describe_span(back_ns - before.died_ns), now.epoch)});
        } else {
            add({s.taken_ns, event_kind::good, now.stage, fmt::format("{} runs as pid {}", label, now.pid)});
        }
        if (crash_ && crash_->seat == seat && crash_->back_ns == 0) {
            crash_->back_ns = back_ns;
            crash_->new_pid = now.pid;
        }
        before.died_ns = 0;
    }
    if (now.paused != before.paused)
        add({s.taken_ns, event_kind::warning, now.stage,
             s.seat_label(seat) + (now.paused ? " is paused, and the pipeline waits for it" : " continues")});
    const u64 died = before.died_ns;
    before = {now.epoch, now.pid, now.state, now.paused, died};
}

void event_tracker::compare_stage(const snapshot& s, u32 stage) {
    const stage_view& now = s.stages[stage];
    stage_memory& before = stages_[stage];
    if (now.torn > before.torn)
        add({s.taken_ns, event_kind::bad, stage,
             fmt::format("{} read {} torn frame(s)", now.name, now.torn - before.torn)});
    if (now.tombstones > before.tombstones)
        add({s.taken_ns, event_kind::warning, stage,
             fmt::format("{} forwarded {} tombstone frame(s)", now.name,
                         now.tombstones - before.tombstones)});
    before = {now.torn, now.tombstones};
}

void event_tracker::feed(const snapshot& s) {
    if (run_ != s.run_id || seats_.size() != s.seats.size() || stages_.size() != s.stages.size()) {
        run_ = s.run_id;
        seats_.assign(s.seats.size(), {});
        stages_.assign(s.stages.size(), {});
        crash_.reset();
        ended_ = false;
        end_ = s.end;
        for (u32 k = 0; k < s.seats.size(); ++k)
            seats_[k] = {s.seats[k].epoch, s.seats[k].pid, s.seats[k].state, s.seats[k].paused, 0};
        for (u32 k = 0; k < s.stages.size(); ++k) stages_[k] = {s.stages[k].torn, s.stages[k].tombstones};
        add({s.taken_ns, event_kind::info, shm::none,
             fmt::format("watching {} (run {})", s.pipeline, s.run_id)});
        return;
    }
    for (u32 k = 0; k < s.seats.size(); ++k) compare_seat(s, k);
    for (u32 k = 0; k < s.stages.size(); ++k) compare_stage(s, k);
    if (s.end != end_ && s.end == ring::end_stopping)
        add({s.taken_ns, event_kind::info, shm::none,
             "the run stops after the frames in flight are finished"});
    end_ = s.end;
    if (!ended_ && s.ended())
        add({s.taken_ns, event_kind::info, shm::none,
             fmt::format("the run is complete: {} frames delivered", s.end - s.first_ring_sequence)});
    ended_ = s.ended();
}

void event_tracker::explain(u32 seat, const std::string& how) {
    if (!crash_ || crash_->seat != seat || how.empty() || crash_->how == how) return;
    if (crash_->asked != requested_end::none) return;  // the exit note already gave a more specific cause
    const std::string before = describe(*crash_);
    crash_->asked = requested_end_named(how);
    crash_->how = crash_->asked == requested_end::none ? how : "";
    for (auto e = events_.rbegin(); e != events_.rend(); ++e) {
        if (e->time_ns != crash_->died_ns || e->stage != crash_->stage || e->text != before) continue;
        e->text = describe(*crash_);
        e->kind = crash_->asked == requested_end::none ? event_kind::bad : event_kind::warning;
        return;
    }
}

}  // namespace carousel::telemetry
