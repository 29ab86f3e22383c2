// seat_keeper: what is done about a process that is dead, hung or unwanted. The order is the protocol's (ring/recovery.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "ring/blame.hpp"
#include "shm/process_id.hpp"
#include "supervisor/driver_leftovers.hpp"
#include "supervisor/mps_domain.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {
namespace {

using ring::load;

/// A death by a signal from outside, before the process is reaped: behind a GPU context that takes about 90 ms.
constexpr const char* killed_text = "killed";

constexpr std::size_t listed_given_up = 1000;

std::string describe_end(const exit_status& e) {
    return e.signal != 0 ? fmt::format("signal {}", e.signal) : fmt::format("exit code {}", e.exit_code);
}

}  // namespace

// The process ends itself, is ended by us, or has missed a deadline: from here on it is history.
void seat_keeper::bury(seat& s) {
    if (!s.now) return;
    life& l = *s.now;
    if (l.seen_dead_ns == 0) l.seen_dead_ns = now_ns();
    advance(s, l, now_ns());
}

void seat_keeper::first_steps(seat& s, life& l) {
    if (l.pid == 0 || l.who.epoch == 0) return;  // an entry that nobody has claimed; a standby, which owned no word
    l.census = ring::census(*c_, s.index, l.who.epoch);
    const shm::seat_block& sb = made_->seat[s.index];
    for (u32 j = sb.first_job; j < std::min(sb.first_job + sb.jobs, shm::max_jobs); ++j) {
        const ring::job_word w = ring::job_word::of(load(c_->job[j]));
        if (w.epoch == l.who.epoch && w.state != ring::job_state::idle && w.state != ring::job_state::committed)
            l.sequences.push_back(load(c_->job_info[j].sequence));
    }
    l.how.through = through(s.stage);
    l.how.commits = load(c_->entry[l.who.entry].commits);
    if (l.how.commits > 0) s.machine.note_commit();
    if (!l.how.through && !l.by_us && !l.counted) count_death(s.index);
    l.counted = true;
    read_alone(s, l.pid);  // it may not have come to say that it is back
    l.log.drain(*s.log, l.pid);
    read_note(l);
    excuse(l);
    l.why = own_hand(l.how) ? ring::blame::own : ring::blame::none;
    if (!l.how.through || l.signalled_ns != 0)
        recoveries_.tell({s.label, l.pid, l.who.epoch, "", l.signalled_ns, l.seen_dead_ns, 0, 0, false});
}

void seat_keeper::advance(seat& s, life& l, u64 now) {
    if (!l.doomed) {
        l.breaks = breaks_domain(s, l);
        const bool followed = !l.breaks && promote_spare(s);
        if (!followed && !s.heir && !paused_)
            s.heir = ring::appoint(*c_, s.index);      // else the whole block is about to be made anew
        if (!followed && !s.heir && !paused_) return;  // no entry is free: the next tick tries again
        first_steps(s, l);
        ring::doom(*c_, l.who.entry);
        crash_here(crash_point::entry_doomed);
        l.doomed = true;
        ring::dismiss_latest(*c_, l.who.entry);
        if (s.vacant_since_ns == 0 && !l.how.through) {
            s.vacant_since_ns = l.signalled_ns != 0 ? l.signalled_ns : l.seen_dead_ns;
            s.vacant_pid = l.pid;
            s.vacant_epoch = l.who.epoch;
        }
        s.gone.push_back(std::move(s.now));
        if (followed) s.now = std::move(s.spare);
    }
    if (!l.revoked) {
        l.revoked = ring::revoke(*c_, s.index, l.who.epoch, [&](u64 sequence) { found_committed(s, l, sequence); });
        crash_here(crash_point::words_revoked);
    }
    if (l.breaks && l.revoked && !l.broke) {
        l.broke = true;
        if (l.excused && !harm_was_asked(l.domain)) count_fault();
        renew_domain(fmt::format("{} (pid {}) died in it", s.label, l.pid));
        tell_end(s, l);
    }
    // One that leaves behind the last frame of the run may do so in peace (tools write their results then), and one that leaves
    // by itself may say why.
    const u64 patience = l.how.through ? setup_->stop_timeout_ns : l.leaving ? ns_per_s : 100 * ns_per_ms;
    const bool due = paused_ || (l.revoked && !l.how.through && !l.leaving) || now - l.seen_dead_ns > patience;
    if (!l.kill_sent && due && now - l.seen_dead_ns >= kill_delay_ns_) {
        if (l.by_us && !l.how.through) count_death(s.index);  // this kill falls behind the abort
        if (l.leaving && !l.ended) l.how.deadline = true;
        kill_life(l);
    }
    if (!l.reclaimed) {
        ring::requeue(*c_, s.index, l.who.epoch, l.why, static_cast<u32>(l.sequences.size()));
        if (l.why == ring::blame::own && !l.blamed) note_given_up(s, l);
        if (!l.blamed && (l.quarantined = count_quarantined(s)) > 0)
            note("quarantined", now_ns(), s, l, fmt::format("left {} half-written buffers: in quarantine until pid {} is gone", l.quarantined, l.pid));
        if (!l.blamed) ring::wake(*c_, s.index);  // a promoted standby sleeps: the words are its own now
        l.blamed = true;
    }
    crash_here(crash_point::words_requeued);
    judge(s, l);
    crash_here(crash_point::death_judged);
    if (l.ended && !l.fenced && fence_is_known(l)) fence(s, l);
    if (!l.fenced || l.reclaimed || !l.revoked) return;
    l.reclaimed = ring::reclaim(*c_, s.index, l.who.epoch);
    crash_here(crash_point::words_reclaimed);
    if (l.reclaimed && l.quarantined > 0) note("freed", now_ns(), s, l, fmt::format("pid {} is gone: its buffers are free again", l.pid));
    reset_assets(l);
}

// The process is gone and its device work with it: nothing of it writes any more.
void seat_keeper::fence(seat& s, life& l) {
    l.fenced = true;
    if (!l.how.through && l.pidfd && l.who.epoch != 0) recoveries_.tell({s.label, l.pid, l.who.epoch, "", 0, 0, l.domain != 0 ? now_ns() : l.ended_ns, 0, false});
    ring::mark_fenced(*c_, l.who.entry);
    crash_here(crash_point::entry_fenced);
    if (l.pid > 0) remove_driver_leftovers(l.pid);
    blame_late(s, l);
    if (l.log.fd() >= 0) {
        loop_->forget(l.log.fd());
        l.log.close(*s.log, l.pid);
    }
    ring::requeue(*c_, s.index, l.who.epoch, l.why, static_cast<u32>(l.sequences.size()));  // once behind the fence
}

void seat_keeper::kill_life(life& l) {
    l.kill_sent = true;
    if (l.ended) return;
    if (l.pidfd && is_client(l) && l.domain == domain_->generation() && domain_->is_up() && !l.with_domain && !l.how.through && l.by_us) return end_client(l);
    if (l.pidfd) shm::signal_pidfd(l.pidfd.get(), SIGKILL);
    if (l.tool_pidfd) shm::signal_pidfd(l.tool_pidfd.get(), SIGKILL);
}

void seat_keeper::on_process_end(seat& s, life& l) {
    if (l.ended) return;
    if (&l == s.spare.get()) return spare_ended(s, now_ns());
    if (l.pidfd) loop_->forget(l.pidfd.get());
    l.ended = true;
    l.ended_ns = now_ns();
    const exit_status status = l.pidfd ? reap(l.pidfd.get()) : exit_status{};
    if (l.seen_dead_ns == 0) l.seen_dead_ns = l.ended_ns;
    if (status.known && l.doomed && l.who.epoch != 0) recoveries_.tell({s.label, l.pid, l.who.epoch, "", 0, 0, 0, 0, false, describe_end(status)});
    if (!l.how.deadline && !l.how.outside && !l.how.asked && status.known &&
        !(l.kill_sent && status.exit_code == exit_code::revoked)) {
        l.how.known = true;
        l.how.exit_code = status.exit_code;
        l.how.signal = status.signal;
        if (l.user_signal != 0 && l.how.signal == l.user_signal) l.how.outside = true;
        excuse(l);
        if (l.excused && l.broke) tell_end(s, l);  // it had left no note
    }
    if (l.judged && l.how.known && s.last_exit_pid == l.pid && s.last_exit == killed_text) {
        s.last_exit = describe(l.how);  // now the kernel has said it
        recoveries_.tell({s.label, l.pid, l.who.epoch, s.last_exit, 0, 0, 0, 0, false});
    }
    if (!l.doomed) bury(s);
    advance(s, l, now_ns());
}

// At which state of its jobs a kill fell. Words of all epochs count: a predecessor's ABORTED ones show a kill that falls into its
// burial.
void seat_keeper::count_death(u32 seat_index) {
    const shm::seat_block& sb = made_->seat[seat_index];
    bool at[5] = {};
    for (u32 j = sb.first_job; j < std::min(sb.first_job + sb.jobs, shm::max_jobs); ++j) {
        const auto state = static_cast<u8>(ring::job_word::of(load(c_->job[j])).state);
        if (state <= 4) at[state] = true;
    }
    bool busy = false;
    for (u32 k = 1; k < 5; ++k) {
        account_.kills_at[k] += at[k] ? 1 : 0;
        busy = busy || at[k];
    }
    account_.kills_at[0] += busy ? 0 : 1;
    ++account_.deaths;
}

// What the dying process could still say, before the kernel says it (with a GPU context that takes about 90 ms).
void seat_keeper::read_note(life& l) const noexcept {
    const u64 note = load(c_->entry[l.who.entry].exit_note);
    if (l.how.known || l.how.deadline || l.how.outside || (note >> 32U) == 0) return;
    l.how.known = true;
    l.how.outside = (note >> 33U & 1U) != 0;
    l.how.exit_code = static_cast<int>(note & 0xFFU);
    l.how.signal = static_cast<int>(note >> 8U & 0xFFU);
    if (l.user_signal != 0 && l.how.signal == l.user_signal) l.how.outside = true;
}

// The policy is asked at once when the cause is known or when the life has delivered frames (then others wait for its successor,
// and an unknown death is taken for one from outside). A life that delivered nothing and said nothing is judged by its exit
// status.
void seat_keeper::judge(seat& s, life& l) {
    if (l.judged) return;
    const bool known = l.how.known || l.how.deadline || l.how.outside || l.how.asked || l.ended;
    const bool last = setup_->stages[s.stage].restart == restart_policy::no;  // then nobody waits, and its cause is wanted
    if (!known && (l.how.commits == 0 || l.how.through || last || (l.leaving && !l.kill_sent))) return;
    l.judged = true;
    s.last_exit_pid = l.pid;
    s.last_exit = s.machine.state() == seat_state::stopping ? "down"
                  : l.with_domain                           ? with_domain_text
                  : l.how.asked                             ? "restarted"
                  : l.how.known || l.how.deadline           ? describe(l.how)
                                                            : killed_text;
    if (!l.how.through) recoveries_.tell({s.label, l.pid, l.who.epoch, s.last_exit, 0, 0, 0, 0, false});
    if (!l.how.through)
        note("died", l.seen_dead_ns, s, l, fmt::format("(pid {}) died: {}; {} frames in flight", l.pid, s.last_exit, l.sequences.size()));
    c_->seat[s.index].held.store(0, std::memory_order_release);
    if (l.by_hand) {  // whoever started it decides about the next one
        s.machine.on(seat_event::take_down, now_ns());
        s.machine.on(seat_event::died_outside, now_ns());
        return;
    }
    const seat_event e = classify(l.how, setup_->stages[s.stage].restart);
    if (e != seat_event::finished && !ending_ && s.machine.state() != seat_state::stopping)
        say(fmt::format("{} (pid {}) died: {}; {} frames in flight", s.label, l.pid, s.last_exit, l.sequences.size()));
    act(s, s.machine.on(e, now_ns()), &l);
}

// The exit status shows an own act that the note did not tell (a bare _exit, a fault without a handler): the attempt is added to
// the frames that nobody has taken up yet.
void seat_keeper::blame_late(seat& s, life& l) noexcept {
    if (!l.doomed || l.why == ring::blame::own || !own_hand(l.how) || l.how.through || l.sequences.empty()) return;
    l.why = ring::blame::own;
    const bool single = l.sequences.size() == 1;
    for (const u64 sequence : l.sequences) ring::blame_waiting(*c_, s.stage, sequence, single);
    note_given_up(s, l);
}

void seat_keeper::note_given_up(const seat& s, const life& l) {
    if (l.sequences.size() != 1) return;
    const u32 cap = made_->stage[s.stage].max_attempts;
    u32 failures = 0;
    ring::for_each_lease_of(*c_, s.stage, l.sequences.front(), [&](const shm::word&, u64 raw, u32 generation) {
        failures = std::max(failures, ring::lease_word::of(raw).seen_at(generation).failures());
    });
    if (cap == 0 || failures < cap) return;
    note("given up", now_ns(), s, l, fmt::format("gives frame {} up after {} attempts", l.sequences.front(), failures));
    if (account_.given_up.size() >= listed_given_up) {
        account_.given_up.erase(account_.given_up.begin());
        ++account_.given_up_before;
    }
    account_.given_up.push_back({l.sequences.front(), setup_->stages[s.stage].name, describe(l.how)});
    say(fmt::format("{}: frame {} is given up after {} attempts ({}): it goes on without a picture", s.label, l.sequences.front(),
                    failures, describe(l.how)));
}

// The word is about to move on. In a sink the death may have come between commit and mark: the mark is made here.
void seat_keeper::found_committed(const seat& s, life& l, u64 sequence) {
    if (std::find(l.committed.begin(), l.committed.end(), sequence) == l.committed.end()) l.committed.push_back(sequence);
    if (setup_->stages[s.stage].has_output()) return;
    recovery seen{s.label, l.pid, l.who.epoch};
    seen.committed = l.committed;
    recoveries_.tell(seen);
    if (const std::string text = ledgers_.found_committed(s.stage, s.index, l.who.epoch, sequence); !text.empty()) say(text);
}

// An asset that the dead one was loading: EMPTY again, now that nothing of it can write any more.
void seat_keeper::reset_assets(const life& l) noexcept {
    for (u32 k = 0; k < std::min(c_->assets, shm::max_assets); ++k) {
        const u64 raw = load(c_->asset[k].state);
        const bool loading = ring::field(raw, 0, 4) == static_cast<u64>(shm::asset_state::loading);
        if (loading && ring::field(raw, 4, 24) == l.who.epoch && raw >> 28U == l.who.seat)
            ring::cas(c_->asset[k].state, raw, static_cast<u64>(shm::asset_state::empty));
    }
}

u32 seat_keeper::count_quarantined(const seat& s) const noexcept {
    const shm::seat_block& sb = made_->seat[s.index];
    const u32 link = made_->stage[s.stage].output_link;
    if (link >= shm::max_links) return 0;
    u32 count = 0;
    for (u32 k = 0; k < std::min(c_->link[link].slots, shm::max_slots); ++k) {
        const ring::slot_word w = ring::slot_word::of(load(c_->link[link].slot[k]));
        count += w.state == ring::slot_state::quarantined && w.job >= sb.first_job && w.job - sb.first_job < sb.jobs ? 1U : 0U;
    }
    return count;
}

void seat_keeper::close_groups_of(u32 stage) noexcept {
    const shm::stage_block& b = made_->stage[stage];
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] < shm::max_links && b.input_group[i] < shm::max_blocking)
            ring::close_group(*c_, b.input_link[i], b.input_group[i]);
}

void seat_keeper::give_up(seat& s, const life* l) {
    const stage_setup& st = setup_->stages[s.stage];
    if (st.optional) {
        const bool others = std::any_of(seats_.begin(), seats_.end(), [&](const auto& o) {
            return o->stage == s.stage && o.get() != &s && o->machine.state() != seat_state::failed;
        });
        say(fmt::format("{} has failed ({}); it is optional: the rest goes on{}", s.label, s.last_exit,
                        others ? "" : " without it"));
        if (others) return;
        close_groups_of(s.stage);
        return;
    }
    if (failure_ || ending_) return;  // the first one counts, and nobody fails by being ended
    root_cause f;
    f.label = s.label;
    f.what = s.last_exit;
    const bool telling = l != nullptr && l->how.known && l->how.signal == 0 && !l->how.was_ready;
    if (telling && (l->how.exit_code == exit_code::usage || l->how.exit_code == exit_code::no_device))
        f.exit_code = l->how.exit_code;
    f.last_lines.assign(s.log->last().begin(), s.log->last().end());
    failure_ = std::move(f);
}

}  // namespace carousel::supervisor
