#include "supervisor/processes/standby.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/device_failure.hpp"
#include "os/spawn.hpp"
#include "runs/clean.hpp"
#include "runs/run_lock.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/start.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 longest_standby_delay_ns = 30 * ns_per_s;

void start_standby(process_table& t, seat& s, u64 now) {
    auto p = std::make_unique<process>();
    p->incarnation = ring::reserve_standby(*t.c, s.index);
    if (!p->incarnation) return;  // every entry belongs to an unfenced process, so the next tick tries again
    p->spawned_ns = now;
    // The delay doubles with each start, even with a successful one, until a standby has reported that it is
    // ready.
    s.standby_delay_ns = std::clamp(2 * s.standby_delay_ns, first_delay_ns, longest_standby_delay_ns);
    s.standby_due_ns = now + s.standby_delay_ns;
    try {
        spawn_process(t, s, *p);
    } catch (const error& e) {
        ring::mark_fenced(*t.c, p->incarnation.entry);
        t.log_line(fmt::format("{}: no standby: {}", s.label, e.what()));
        return;
    }
    s.standby = std::move(p);
    watch_process(t, s, *s.standby);
}

void count_promotion(process_table& t, seat& s, i32 pid) {
    s.by_standby = true;
    // the next standby may be started as soon as the promoted standby works
    s.clock_base_ns = s.standby_due_ns = now_ns();
    s.remember(pid);
    ++s.restarts;
    ++t.account.restarts;
    ++t.account.promoted;
}

/// Returns a time by which the process was ready: the time at which its report was read, or the time of its
/// first commit if that is earlier or no report was read yet. Returns 0 if the process attached under an
/// earlier supervisor.
u64 ready_before(const process& p, u64 first_commit_ns) noexcept {
    if (p.attached_ns == 0) return 0;
    return p.ready_ns == 0 ? first_commit_ns : std::min(p.ready_ns, first_commit_ns);
}

}  // namespace

standby_care care_for(const standby_view& v) noexcept {
    if (v.there)
        return !v.standing_by && !v.kill_sent && v.age_ns > v.start_timeout_ns ? standby_care::end_late
                                                                               : standby_care::none;
    const bool holder_works =
        v.holder_there && (v.seat == seat_state::running
                               ? v.holder_ready
                               : v.seat == seat_state::starting && v.restarts > 0 && v.fresh_deaths == 0);
    return v.configured && v.wanted_now && holder_works && v.due ? standby_care::start : standby_care::none;
}

succession choose_succession(const succession_view& v) noexcept {
    if (!v.configured) return succession::fresh;
    if (!v.there) return succession::none;
    if (!v.standing_by) return succession::starting;
    return v.holder_running && v.holder_delivered ? succession::standby : succession::untried;
}

void no_more_starts(process_table& t) noexcept {
    t.ending = true;
    for (auto& s : t.seats) end_standby(*s);
}

void keep_standby(process_table& t, seat& s, u64 now) {
    if (s.vacant_since_ns != 0 && s.now) {
        const u64 first = ring::load(t.c->entry[s.now->incarnation.entry].first_commit_ns);
        if (first > s.vacant_since_ns) {
            recovery back{s.label, s.vacant_pid, s.vacant_epoch, "", 0, 0, 0, first, s.by_standby};
            back.started_ns = s.now->spawned_ns;
            back.attached_ns = s.now->attached_ns;
            back.ready_ns = ready_before(*s.now, first);
            t.recoveries.report(back);
            (s.by_standby ? s.counters.standby_takeovers : s.counters.takeovers)
                .add(static_cast<f64>(first - s.vacant_since_ns) / 1e9);
            t.log_line(fmt::format("{} is back as pid {} after {}{}", s.label, s.now->pid,
                                   telemetry::describe_span(first - s.vacant_since_ns),
                                   s.by_standby ? " (standby)" : ""));
            s.vacant_since_ns = 0;
        }
    }
    standby_view v{t.setup->stages[s.stage].spec.standby,
                   !t.ending && !t.paused && t.memory_there && !t.through(s.stage) && may_stand_by(t, s)};
    v.seat = s.machine.state();
    v.holder_there = s.now != nullptr;
    v.holder_ready = s.now && s.now->how.was_ready;
    v.restarts = s.restarts;
    v.fresh_deaths = s.machine.fresh_deaths();
    v.there = s.standby != nullptr;
    v.standing_by = s.standby && s.standby->standing_by && !s.standby->kill_sent;
    v.kill_sent = s.standby && s.standby->kill_sent;
    v.age_ns = s.standby ? now - std::min(now, t.groups.uncounted().shifted(s.standby->spawned_ns, now)) : 0;
    v.start_timeout_ns = t.setup->start_timeout_ns;
    v.due = now >= s.standby_due_ns;
    switch (care_for(v)) {
        case standby_care::start:
            start_standby(t, s, now);
            break;
        case standby_care::end_late:
            t.log_line(fmt::format("{}'s standby (pid {}) was not ready within {} s, so it is ended", s.label,
                                   s.standby->pid, t.setup->start_timeout_ns / ns_per_s));
            end_standby(s);
            break;
        case standby_care::none:
            break;
    }
}

bool promote_standby(process_table& t, seat& s) {
    const bool in_work =
        s.machine.state() == seat_state::running || s.machine.state() == seat_state::starting;
    succession_view v;
    const bool replaced = s.now->how.restart_requested && !s.now->mps.with_domain;
    v.configured = t.setup->stages[s.stage].spec.standby && !t.ending && !t.paused && !s.successor &&
                   in_work && !replaced && !s.now->by_hand && !t.has_finished(s.stage, s.now->how) &&
                   (!s.standby || standby_fits(t, s));
    v.holder_running = s.machine.state() == seat_state::running;
    v.holder_delivered = ring::load(t.c->entry[s.now->incarnation.entry].commits) != 0;
    v.there = s.standby != nullptr;
    v.standing_by = s.standby && s.standby->standing_by;
    switch (choose_succession(v)) {
        case succession::fresh:
            return false;
        case succession::none:
            ++t.account.no_standby[static_cast<u8>(why_no_standby::none)];
            return false;
        case succession::starting:
            ++t.account.no_standby[static_cast<u8>(why_no_standby::starting)];
            return false;
        case succession::untried:
            ++t.account.no_standby[static_cast<u8>(why_no_standby::untried)];
            return false;
        case succession::standby:
            break;
    }
    const ring::incarnation_id incarnation = ring::promote(*t.c, s.index, s.standby->incarnation.entry);
    if (!incarnation) return false;
    s.standby->incarnation = incarnation;
    count_promotion(t, s, s.standby->pid);
    return true;
}

// Handles a STANDBY entry that a dead supervisor has left. If no process has claimed the entry, the entry is
// withdrawn; a process that was already spawned for it is then refused. If its process has died, the entry is
// free, because a standby owns nothing. If its process is alive, the standby is kept, or is ended for a
// reason that is logged.
void adopt_standby(process_table& t, seat& s, u32 entry, const std::string& run_id,
                   const std::vector<process_record>& remembered) {
    shm::incarnation& e = t.c->entry[entry];
    if (ring::withdraw(*t.c, entry)) return;
    auto p = std::make_unique<process>();
    p->incarnation = {s.index, entry, 0};
    p->pid = static_cast<i32>(ring::entry_word::of(ring::load(e.identity)).pid);
    p->pidfd = open_claimer(e, run_id);
    if (!p->pidfd) {
        ring::mark_fenced(*t.c, entry);
        if (p->pid > 0) remove_driver_leftovers(p->pid);
        return;
    }
    p->tool = !t.setup->stages[s.stage].spec.prefix.empty();
    p->spawned_ns = now_ns();
    p->standing_by = p->how.was_ready = ring::load(e.live_since_ns) != 0;
    // the process was found by the start time in the entry, so this time is right
    if (p->how.was_ready) p->start_time = ring::load(e.start_time);
    p->mps.generation = adopted_generation(t, s, p->incarnation, remembered);
    // The seat already names the standby: the dead supervisor had decided to promote it.
    if (ring::seat_word::of(ring::load(t.c->seat[s.index].current)).entry == entry) {
        if (const ring::incarnation_id incarnation = ring::promote(*t.c, s.index, entry); incarnation) {
            p->incarnation = incarnation;
            count_promotion(t, s, p->pid);
            s.now = std::move(p);
            return;
        }
    }
    const char* const misplaced = s.standby ? "the dead supervisor has left another standby"
                                  : !t.setup->stages[s.stage].spec.standby
                                      ? "the stage no longer has a standby"
                                  : p->mps.generation != generation_for(t, s, true)
                                      ? "it does not wait in the MPS domain in which it must"
                                      : nullptr;
    if (misplaced != nullptr) {
        t.log_line(fmt::format("{}'s standby (pid {}) is ended: {}", s.label, p->pid, misplaced));
        shm::signal_pidfd(p->pidfd.get(), SIGKILL);
        ring::doom(*t.c, entry);
        p->step = retirement_step::revoked;  // it owned no word
        p->judged = p->counted = p->mps.terminated = p->kill_sent = true;
        s.gone.push_back(std::move(p));
        return;
    }
    s.standby = std::move(p);
    watch_process(t, s, *s.standby);
}

void end_standby(const seat& s) noexcept {
    if (!s.standby) return;
    s.standby->kill_sent = true;
    s.standby->standing_by = false;
    if (s.standby->pidfd) shm::signal_pidfd(s.standby->pidfd.get(), SIGKILL);
}

// A standby owns nothing, so its entry is free as soon as its process has ended.
void standby_ended(process_table& t, seat& s, u64 now) {
    process& p = *s.standby;
    t.loop->forget(p.pidfd.get());
    const exit_status status = reap(p.pidfd.get());
    if (p.incarnation) ring::mark_fenced(*t.c, p.incarnation.entry);
    remove_driver_leftovers(p.pid);
    if (p.log.fd() >= 0) {
        t.loop->forget(p.log.fd());
        p.log.close(*s.log, p.pid);
    }
    if (!t.ending && !t.paused && status.known && status.signal == 0)
        t.log_line(
            fmt::format("{}'s standby (pid {}) has exited (exit code {})", s.label, p.pid, status.exit_code));
    // A fault of a standby ends its domain, as that of any client: the server may refuse further clients.
    const bool faulted =
        status.known && status.signal == 0 &&
        (status.exit_code == exit_code::gpu_fault || status.exit_code == exit_code::gpu_lost ||
         status.exit_code == exit_code::no_device);
    if (faulted && p.mps.generation != 0 && p.mps.generation == t.domain->spare_generation())
        t.domain->drop_spare();
    s.standby_due_ns = std::max(s.standby_due_ns, now + first_delay_ns);
    s.standby.reset();
}

}  // namespace carousel::supervisor
