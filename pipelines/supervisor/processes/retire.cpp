#include "supervisor/processes/retire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "os/spawn.hpp"
#include "ring/blame.hpp"
#include "ring/latest.hpp"
#include "ring/reentry.hpp"
#include "runs/clean.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"

namespace carousel::supervisor {
namespace {

using ring::load;

/// Before a rebuild, a port's program may commit its frame for this time.
constexpr u64 port_commit_patience_ns = ns_per_s;
/// A run that ends waits this long for the entry of a successor of a process that has ended.
constexpr u64 entry_patience_ns = ns_per_s;

void kill_process(process_table& t, process& p) {
    p.kill_sent = true;
    if (p.ended || p.port) return;
    if (p.pidfd && can_terminate_client(t, p)) return end_client(t, p);
    if (p.pidfd) shm::signal_pidfd(p.pidfd.get(), SIGKILL);
    if (p.tool_pidfd) shm::signal_pidfd(p.tool_pidfd.get(), SIGKILL);
}

// Called before a word is passed on. A process of a sink may have died between the commit and the mark in the
// ledger; in that case the mark is made here.
void found_committed(process_table& t, const seat& s, process& p, u64 ring_sequence) {
    if (std::find(p.committed.begin(), p.committed.end(), ring_sequence) == p.committed.end())
        p.committed.push_back(ring_sequence);
    if (!t.setup->stages[s.stage].is_sink()) return;
    recovery seen{s.label, p.pid, p.incarnation.epoch};
    seen.committed = p.committed;
    t.recoveries.report(seen);
    if (const std::string text =
            t.ledgers.found_committed(s.stage, s.index, p.incarnation.epoch, ring_sequence);
        !text.empty())
        t.log_line(text);
}

// ---- the actions of the sequence

/// R1. Returns false if no entry is free, or if the seat's word is damaged; the next poll tries again.
bool name_successor(process_table& t, seat& s, process& p) {
    p.mps.breaks = death_breaks_domain(t, s, p);
    if (promote_standby(t, s)) return true;
    // Before a rebuild, the entry only gives the seat another epoch, without which no word can be revoked.
    // The words of a damaged block are left as they are, except those of a program, which may continue to
    // run.
    if (!s.successor && (!t.paused || t.words_intact || p.port)) s.successor = ring::appoint(*t.c, s.index);
    // While a run ends, its words are not repaired any more, so the word of the seat may remain damaged. The
    // process has ended, so it commits nothing, and no successor is started.
    const bool in_vain = t.ending && p.ended && now_ns() - p.seen_dead_ns > entry_patience_ns;
    return s.successor || t.paused || in_vain;
}

/// R1. From here on the seat belongs to its successor: a promoted standby has an epoch and occupies the seat.
void doom(process_table& t, seat& s, process& p) {
    record_death(t, s, p);
    ring::doom(*t.c, p.incarnation.entry);
    crash_here(crash_point::entry_doomed);
    ring::dismiss_latest(*t.c, p.incarnation.entry);
    if (s.vacant_since_ns == 0 && !p.how.through && !p.port) {
        s.vacant_since_ns = p.signalled_ns != 0 ? p.signalled_ns : p.seen_dead_ns;
        s.vacant_pid = p.pid;
        s.vacant_epoch = p.incarnation.epoch;
    }
    s.gone.push_back(std::move(s.now));
    if (s.standby && s.standby->incarnation.epoch != 0) s.now = std::move(s.standby);
}

/// Before a rebuild: true while a port's program may still commit the frame that it has. A program without a
/// frame is revoked at once.
bool may_still_commit(const process_table& t, const seat& s, const process& p) noexcept {
    if (!t.paused || !p.port || p.ended || now_ns() - p.seen_dead_ns > port_commit_patience_ns) return false;
    const ring::job_census of = ring::census(*t.c, s.index, p.incarnation.epoch);
    return of.by_state[static_cast<u8>(ring::job_state::open)] +
               of.by_state[static_cast<u8>(ring::job_state::submitted)] +
               of.by_state[static_cast<u8>(ring::job_state::committed)] >
           0;
}

/// R2. Returns true if none of the process's words can be committed any more.
bool revoke(process_table& t, seat& s, process& p) {
    if (may_still_commit(t, s, p)) return false;
    bool taken = ring::revoke(*t.c, s.index, p.incarnation.epoch,
                              [&](u64 ring_sequence) { found_committed(t, s, p, ring_sequence); });
    // Damaged words are not repaired any more, and a port's program cannot be killed.
    if (!taken && t.paused && p.port && now_ns() - p.seen_dead_ns > 2 * port_commit_patience_ns) {
        ring::abort_all(*t.c, p.incarnation);
        ring::wake(*t.c, s.index);
        taken = true;
    }
    crash_here(crash_point::words_revoked);
    return taken;
}

/// R3
void end_process(process_table& t, const seat& s, process& p) {
    if (p.by_supervisor && !p.how.through)
        count_death(t, s.index);  // a death caused by the supervisor is counted here, after the abort of the
                                  // process's words
    if (p.leaving && !p.ended) p.how.deadline = true;
    kill_process(t, p);
}

/// R4. Repeated at each poll until the process is fenced, because a process that was stopped between two of
/// its own CASes may still tag words when it continues.
void requeue(process_table& t, seat& s, process& p) {
    ring::requeue(*t.c, s.index, p.incarnation.epoch, p.why, frames_in_flight(p));
    crash_here(crash_point::words_requeued);
    if (p.requeued) return;
    p.requeued = true;
    if (p.why == ring::blame::own) note_abandoned(t, s, p);
    if (p.quarantined = count_quarantined(t, s); p.quarantined > 0)
        t.note("quarantined", now_ns(), s, p,
               fmt::format("left {} half-written buffers, which stay in quarantine until pid {} has ended",
                           p.quarantined, p.pid));
    ring::wake(*t.c, s.index);  // wakes a promoted standby, which owns the words now
}

/// The process and its device work have ended: it can no longer write.
void fence(process_table& t, seat& s, process& p) {
    if (!p.how.through && p.pidfd && p.incarnation.epoch != 0)
        t.recoveries.report({s.label, p.pid, p.incarnation.epoch, "", 0, 0,
                             p.mps.generation != 0 ? now_ns() : p.ended_ns, 0, false});
    s.counters.cpu_ns += uncounted_cpu_ns(t, p);
    p.cpu_counted = true;
    ring::mark_fenced(*t.c, p.incarnation.entry);
    crash_here(crash_point::entry_fenced);
    if (p.pid > 0 && !p.elsewhere && !p.has_detached) remove_driver_leftovers(p.pid);
    if (p.port) remove_port_lock(t, p);
    blame_late(t, s, p);
    if (p.log.fd() >= 0) {
        t.loop->forget(p.log.fd());
        p.log.close(*s.log, p.pid);
    }
    // once after the fence
    ring::requeue(*t.c, s.index, p.incarnation.epoch, p.why, frames_in_flight(p));
}

/// R5. Returns true if no word contains the epoch of the process any more.
bool reclaim(process_table& t, seat& s, process& p) {
    const bool freed = ring::reclaim(*t.c, s.index, p.incarnation.epoch);
    crash_here(crash_point::words_reclaimed);
    if (freed && p.quarantined > 0)
        t.note("freed", now_ns(), s, p,
               fmt::format("pid {} has ended, so its buffers are free again", p.pid));
    ring::reset_assets(*t.c, s.index, p.incarnation.epoch);
    return freed;
}

bool kill_due(const process_table& t, const process& p, u64 now) noexcept {
    const u64 since = t.groups.uncounted().shifted(p.seen_dead_ns, now);
    return !p.kill_sent &&
           kill_is_due({t.paused, is_revoked(p), p.how.through, p.leaving, now - std::min(now, since),
                        t.setup->stop_timeout_ns, t.setup->kill_delay_ns});
}

bool verdict_due(const process_table& t, const seat& s, const process& p) noexcept {
    const bool known = p.how.known || p.how.deadline || p.how.outside || p.how.restart_requested;
    const bool last = t.setup->stages[s.stage].spec.restart == restart_policy::no;
    // nothing waits for a successor that gets no frame
    const bool through = p.how.through || t.has_all_frames(s.stage);
    return !p.judged &&
           verdict_is_due({known, p.ended, p.how.commits != 0, through, last, p.leaving, p.kill_sent});
}

process* find_process(seat& s, const ring::incarnation_id& incarnation) noexcept {
    const auto is_it = [&](const std::unique_ptr<process>& p) {
        return p && p->incarnation.entry == incarnation.entry && p->incarnation.epoch == incarnation.epoch;
    };
    if (is_it(s.now)) return s.now.get();
    const auto at = std::find_if(s.gone.begin(), s.gone.end(), is_it);
    return at != s.gone.end() ? at->get() : nullptr;
}

}  // namespace

void retire(process_table& t, seat& s) {
    if (!s.now) return;
    process& p = *s.now;
    if (p.seen_dead_ns == 0) p.seen_dead_ns = now_ns();
    if (p.step == retirement_step::working) p.step = retirement_step::condemned;
    in_order(t, [&] { t.todo.push_back({work::kind::retire, s.index, p.incarnation}); });
}

void poll_retirement(process_table& t, seat& s, process& p, u64 now) {
    using A = retirement_action;
    const auto is_next = [&](A action) { return is_done_in(p.step, action); };
    if (is_next(A::succeed) && name_successor(t, s, p)) {
        p.step = step_after(p.step, A::succeed);
        doom(t, s, p);
    }
    if (!is_doomed(p)) return;
    if (is_next(A::revoke) && revoke(t, s, p)) p.step = step_after(p.step, A::revoke);
    if (is_next(A::renew_domain) && p.mps.breaks && !p.mps.broke) domain_breaks(t, s, p);
    if (is_next(A::kill) && kill_due(t, p, now)) end_process(t, s, p);
    if (is_next(A::requeue)) requeue(t, s, p);
    if (is_next(A::judge) && verdict_due(t, s, p)) {
        apply_restart_policy(t, s, p);
        crash_here(crash_point::death_judged);
    }
    if (is_next(A::fence) && p.ended && fence_is_known(t, p)) {
        p.step = step_after(p.step, A::fence);
        fence(t, s, p);
    }
    if (is_next(A::reclaim) && reclaim(t, s, p)) p.step = step_after(p.step, A::reclaim);
}

void settle(process_table& t) {
    while (!t.todo.empty()) {
        const work w = t.todo.front();
        t.todo.pop_front();
        seat& s = *t.seats[w.seat];
        switch (w.what) {
            case work::kind::retire:
                if (process* p = find_process(s, w.incarnation); p != nullptr)
                    poll_retirement(t, s, *p, now_ns());
                break;
            case work::kind::start:
                start_seat(t, s);
                break;
            case work::kind::renew_domain:
                renew_daemon(t);
                break;
        }
    }
}

void record_death(process_table& t, seat& s, process& p) {
    // the entry owned no word, because no process has claimed it, or only a standby
    if (p.pid == 0 || p.incarnation.epoch == 0) return;
    const shm::seat_block& sb = t.made->seat[s.index];
    for (u32 j = sb.first_job; j < std::min(sb.first_job + sb.jobs, shm::max_jobs); ++j) {
        const ring::job_word w = ring::job_word::of(load(t.c->job[j]));
        if (w.state == ring::job_state::damaged) ++p.unknown_frames;
        if (w.epoch != p.incarnation.epoch || w.state == ring::job_state::idle ||
            w.state == ring::job_state::committed)
            continue;
        if (const u64 n = load(t.c->job_info[j].ring_sequence); n != shm::no_number)
            p.sequences.push_back(n);
        else
            ++p.unknown_frames;
    }
    p.how.through = t.has_finished(s.stage, p.how);
    p.how.may_give_back = t.setup->stages[s.stage].spec.is_remote(s.instance);
    p.how.exposed = t.setup->stages[s.stage].receives();
    p.how.commits = load(t.c->entry[p.incarnation.entry].commits);
    if (p.how.commits > 0) s.machine.note_commit();
    if (!p.how.through && !p.by_supervisor && !p.counted) count_death(t, s.index);
    p.counted = true;
    read_alone(t, s, p.pid);  // the process may have died before it reconnected
    p.log.drain(*s.log, p.pid);
    read_exit_note(t, p);
    excuse_process(t, p);
    p.why = is_blamed(t, s, p) ? ring::blame::own : ring::blame::none;
    p.wild_write = wild_write_text(t, p);
    if (!p.how.through || p.signalled_ns != 0)
        t.recoveries.report(
            {s.label, p.pid, p.incarnation.epoch, "", p.signalled_ns, p.seen_dead_ns, 0, 0, false});
}

u32 count_quarantined(const process_table& t, const seat& s) noexcept {
    const shm::seat_block& sb = t.made->seat[s.index];
    const shm::stage_block& made = t.made->stage[s.stage];
    u32 count = 0;
    for (u32 o = 0; o < std::min(made.outputs, shm::max_outputs); ++o) {
        const u32 link = std::min(made.output_link[o], shm::max_links - 1);
        for (u32 k = 0; k < std::min(t.c->link[link].slots, shm::max_slots); ++k) {
            const ring::slot_word w = ring::slot_word::of(load(t.c->link[link].slot[k]));
            const bool its = w.job >= sb.first_job && w.job - sb.first_job < sb.jobs;
            count += w.state == ring::slot_state::quarantined && its ? 1U : 0U;
        }
    }
    return count;
}

}  // namespace carousel::supervisor
