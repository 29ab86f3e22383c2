#include "supervisor/processes/adoption.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "ring/check/block_check.hpp"
#include "ring/check/repair.hpp"
#include "ring/event_domain.hpp"
#include "runs/run_lock.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/processes/watch.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
using ring::entry_state;
using ring::entry_word;

/// A higher number of an MPS domain is damaged, or the absence of a number.
constexpr u32 most_generations = 1U << 20U;

std::unique_ptr<process> process_from(process_table& t, seat& s, u32 entry, const std::string& run_id,
                                      const std::vector<process_record>& remembered) {
    shm::incarnation& e = t.c->entry[entry];
    auto p = std::make_unique<process>();
    const ring::seat_word sits = ring::seat_word::of(ring::load(t.c->seat[s.index].current));
    const u32 given = entry_word::of(ring::load(e.identity)).epoch;
    // The dead supervisor died between the two steps of appoint(), so this entry cannot have been given to a
    // process. An entry with an older epoch was the seat's: its process has died before its claim, and the
    // words still have its epoch, because the dead supervisor had only appointed its successor. It is
    // retired.
    if (ring::withdraw(*t.c, entry) && sits.entry != entry && given == ring::next_epoch(sits.epoch)) {
        ring::discard(*t.c, entry);
        return nullptr;
    }
    // The retirement of a current entry begins with the successor's appointment, which takes any FENCED entry
    // that no word names. The successor must not take this entry: predecessor and successor would then have
    // the same entry, and the successor would be doomed instead of the predecessor.
    if (sits.entry == entry) ring::doom_again(*t.c, entry);
    const entry_word w = entry_word::of(ring::load(e.identity));
    p->incarnation = {s.index, entry, w.epoch};
    p->pid = static_cast<i32>(w.pid);
    p->step = w.state == entry_state::fenced   ? retirement_step::fenced_early
              : w.state == entry_state::doomed ? retirement_step::doomed
                                               : retirement_step::working;
    p->port = is_port(t, s);
    p->elsewhere = p->port;  // the pid namespace of the program is not known any more
    if (!is_fenced(*p) && !p->port) p->pidfd = open_claimer(e, run_id);
    p->ended = p->port ? is_fenced(*p) || p->pid == 0 || port_has_ended(t, *p) : !p->pidfd;
    p->tool = !t.setup->stages[s.stage].spec.prefix.empty();
    p->how.was_ready = ring::load(e.live_since_ns) != 0;
    // the process was found by the start time in the entry, so this time is right
    if (p->how.was_ready && p->pidfd) p->start_time = ring::load(e.start_time);
    p->spawned_ns = std::max(ring::load(e.live_since_ns), t.c->created_ns);
    p->judged = p->pid == 0;
    for (const process_record& r : remembered) {
        if (r.entry != entry || r.epoch != w.epoch) continue;
        p->by_hand = r.by_hand;
        p->tool = r.tool;
        if (r.spawned_ns != 0) p->spawned_ns = r.spawned_ns;
        p->signalled_ns = r.signalled_ns;
        p->seen_dead_ns = r.seen_dead_ns;
        p->user_signal = r.user_signal;
        p->by_supervisor = r.by_supervisor;
        p->counted = r.counted;
        p->cpu_counted = r.cpu_counted;
        if (p->counted)
            p->signalled_ns = 0;  // the time of the signal is used only until the death is detected
        p->judged = p->judged || r.judged;
        p->how.outside = r.outside;
        p->how.restart_requested = r.restart_requested;
        p->how.deadline = r.deadline;
        p->mps.with_domain = r.with_domain;
        p->on_gpu = r.on_gpu;
    }
    if (p->pid != 0 && !p->by_hand) p->mps.generation = adopted_generation(t, s, p->incarnation, remembered);
    p->mps.terminated = is_fenced(*p);  // a client that is fenced has no device work left
    // the process was spawned after the state file was written
    if (p->pid != 0 && std::find(s.pids.begin(), s.pids.end(), p->pid) == s.pids.end()) {
        if (!s.pids.empty()) {
            ++s.restarts;
            ++t.account.restarts;
        }
        s.remember(p->pid);
    }
    return p;
}

void find_processes(process_table& t, seat& s, const std::string& run_id,
                    const std::vector<process_record>& remembered, found_processes& n) {
    const ring::seat_word sits = ring::seat_word::of(ring::load(t.c->seat[s.index].current));
    if (sits.entry != shm::none)
        ring::revoke(*t.c, s.index, 0);  // needed for a first start, because the dead supervisor may have
                                         // appointed the entry without passing the words on to it
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        const entry_word w = entry_word::of(ring::load(t.c->entry[k].identity));
        if (w.seat != s.index || w.state == entry_state::damaged)
            continue;  // the owner of the word cannot
                       // be determined
        const found_entry what =
            what_is(w, sits.entry == k && sits.epoch == w.epoch, ring::reusable(*t.c, k));
        if (what == found_entry::unowned) continue;
        if (what == found_entry::standby) {
            adopt_standby(t, s, k, run_id, remembered);
            continue;
        }
        const bool current = what == found_entry::current;
        std::unique_ptr<process> p = process_from(t, s, k, run_id, remembered);
        if (!p) continue;
        if (current && !p->ended) ++n.alive;
        if (current && p->ended && p->pid != 0 && s.machine.state() != seat_state::done) ++n.dead;
        if (current)
            s.now = std::move(p);
        else
            s.gone.push_back(std::move(p));
    }
    if (s.now && s.by_standby) ++n.alive;
    n.standbys += s.standby ? 1 : 0;
    // A promotion was interrupted between its two steps, and the standby is dead, so the seat names an epoch
    // that no process has. Therefore a fresh process is appointed now. Without it, a retirement would pass
    // the dead holder's words on to an epoch that no process has, and no process would ever process them.
    if (!s.now && sits.entry != shm::none) s.successor = ring::appoint(*t.c, s.index);
}

void resume_seat(process_table& t, seat& s) {
    const u64 now = now_ns();
    const seat_state before = s.machine.state();
    const bool paused = ring::load(t.c->seat[s.index].paused) != 0;
    s.machine.restore_paused(paused);  // done even if the process is dead, because the pause also applies to
                                       // its successor
    for (auto& p : s.gone) {
        ring::doom(*t.c, p->incarnation.entry);
        if (p->seen_dead_ns == 0) p->seen_dead_ns = now;
        record_death(t, s, *p);
        if (!is_doomed(*p)) p->step = retirement_step::doomed;
        p->mps.breaks = death_breaks_domain(t, s, *p);
        // the process already has a successor, so its death was judged
        p->judged = p->judged || (s.now && s.now->pid != 0);
        if (p->ended) p->ended_ns = now;
        if (!p->ended) watch_process(t, s, *p);
    }
    if (s.now && !s.now->ended) {
        process& p = *s.now;
        s.machine.resume(paused            ? seat_state::stopped
                         : p.how.was_ready ? seat_state::running
                                           : seat_state::starting,
                         s.machine.since_ns(), s.machine.fresh_deaths());
        s.start_wanted = false;
        watch_process(t, s, p);
        if (is_doomed(p) || p.by_supervisor) {  // the process is about to exit, or the dead supervisor had
                                                // begun to replace it
            p.step = retirement_step::working;
            retire(t, s);
        }
        return;
    }
    read_alone(t, s, s.now ? s.now->pid : 0);
    if (s.now) {
        process& p = *s.now;
        p.ended_ns = now;
        if (p.pid != 0 && rests(before))
            // the process was started after the state file was written
            s.machine.resume(seat_state::starting, now, s.machine.fresh_deaths());
        p.step = retirement_step::working;  // the retirement begins with its first step
        const bool unclaimed = p.pid == 0;
        retire(t, s);
        if (!unclaimed) return;  // the verdict on the holder's death has set the state
    }
    // `carousel down STAGE` was called, and the process has ended
    if (before == seat_state::stopping) s.machine.on(seat_event::died_outside, now);
    if (!successor_is_wanted(
            {before, std::any_of(s.gone.begin(), s.gone.end(), [](const auto& p) { return !p->judged; })}))
        return;
    s.machine.resume(seat_state::starting, now, s.machine.fresh_deaths());
    s.start_wanted = true;
    s.due_ns = 0;
}

std::vector<ring::known_process> recorded_processes(const process_records& remembered) {
    std::vector<ring::known_process> recorded;
    for (u32 seat = 0; seat < remembered.size(); ++seat)
        for (const process_record& p : remembered[seat])
            recorded.push_back({seat, p.entry, p.epoch, static_cast<u32>(p.pid), false, p.epoch == 0,
                                p.was_ready, p.start_time});
    return recorded;
}

/// Kills each process that the entry may have named: the pid found in the entry, and each pid that differs
/// from it by one bit.
void end_unknown_process(const shm::incarnation& e, const std::string& run_id) {
    constexpr unsigned pid_from = 40;
    const u64 raw = ring::load(e.identity);
    for (unsigned bit = pid_from - 1; bit < 64; ++bit) {
        const auto pid = static_cast<i32>((bit < pid_from ? raw : raw ^ u64{1} << bit) >> pid_from);
        const shm::unique_fd fd = shm::open_member({pid, ring::load(e.start_time)}, run_id);
        if (fd) shm::signal_pidfd(fd.get(), SIGKILL);
    }
}

// The dead supervisor may have fenced a process after it last wrote the state file. It may have reported the
// CPU time of that process to a client, so the time is counted here before the entry is used again.
void count_cpu_of_fenced(process_table& t, process_records& remembered) {
    for (auto& s : t.seats) {
        for (process_record& r : remembered[s->index]) {
            if (r.cpu_counted || r.entry >= shm::max_incarnations) continue;
            const entry_word w = entry_word::of(ring::load(t.c->entry[r.entry].identity));
            if (w.state != entry_state::fenced || w.seat != s->index || w.epoch != r.epoch) continue;
            s->counters.cpu_ns += ring::load(t.c->entry[r.entry].cpu_ns);
            r.cpu_counted = true;
        }
    }
}

/// A dead supervisor may have failed to record the number of the domain that serves.
void mark_generations(const process_table& t) noexcept {
    const auto mark = [&](const std::unique_ptr<process>& p) {
        if (p) t.domain->mark_used(p->mps.generation);
    };
    for (const auto& s : t.seats) {
        mark(s->now);
        mark(s->standby);
        std::for_each(s->gone.begin(), s->gone.end(), mark);
    }
}

/// True if the dead supervisor had begun a joint takeover, and the spare domain does not serve yet.
bool was_renewing(const process_table& t) noexcept {
    const auto is_over = [&](const process& p) {
        return p.mps.with_domain && !is_fenced(p) && p.mps.generation == t.domain->generation();
    };
    return std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        return (s->now && (s->now->mps.generation > t.domain->generation() || is_over(*s->now))) ||
               std::any_of(s->gone.begin(), s->gone.end(), [&](const auto& p) { return is_over(*p); });
    });
}

}  // namespace

u32 adopted_generation(const process_table& t, const seat& s, const ring::incarnation_id& id,
                       const std::vector<process_record>& remembered) noexcept {
    if (t.domain == nullptr) return 0;
    // The process itself has published the number. A record may be that of an earlier standby in the entry.
    const shm::incarnation& e = t.c->entry[id.entry];
    const u64 published = ring::load(e.events_published);
    if (published != 0 && ring::domain_of_events(published) < most_generations)
        return ring::domain_of_events(published);
    const u32 pid = entry_word::of(ring::load(e.identity)).pid;
    for (const process_record& r : remembered)
        if (r.entry == id.entry && r.epoch == id.epoch && static_cast<u32>(r.pid) == pid &&
            r.domain < most_generations)
            return r.domain;
    return id.epoch != 0 && wants_domain(t, s) ? t.domain->generation() : 0;
}

found_entry what_is(const ring::entry_word& entry, bool named_by_seat, bool reusable) noexcept {
    if (entry.state == entry_state::unused) return found_entry::unowned;
    if (entry.state == entry_state::standby) return found_entry::standby;
    if (named_by_seat) return found_entry::current;
    return entry.state == entry_state::fenced && reusable ? found_entry::unowned : found_entry::retiring;
}

bool rests(seat_state s) noexcept {
    return s == seat_state::down || s == seat_state::failed || s == seat_state::done ||
           s == seat_state::backoff || s == seat_state::stopping;
}

bool successor_is_wanted(const vacancy_view& v) noexcept { return !rests(v.before) && !v.died_unjudged; }

found_processes adopt_processes(process_table& t, const json& state, const std::string& run_id) {
    t.memory_there = false;
    // the states are the same as after start_all()
    for (auto& s : t.seats) s->machine.resume(seat_state::starting, now_ns(), 0);
    process_records remembered;  // the processes that the dead supervisor knew
    try {
        if (state.is_object()) remembered = restore_state(t, state);
    } catch (const json::exception& e) {
        t.log_line(
            fmt::format("the counts of the dead supervisor can't be read ({}), so restarts and deaths are "
                        "counted from now on",
                        e.what()));
    }
    repair_adopted_entries(t, remembered, run_id);
    repair_start_times(t, remembered);
    remembered.resize(t.seats.size());
    count_cpu_of_fenced(t, remembered);
    found_processes n;
    for (auto& s : t.seats) find_processes(t, *s, run_id, remembered[s->index], n);
    if (t.domain != nullptr) {
        mark_generations(t);
        t.domain->end_nameless();
    }
    in_order(t, [&] {
        for (auto& s : t.seats) resume_seat(t, *s);
        if (t.domain == nullptr || t.account.domain_abandoned) return;
        if (!t.domain->is_up())
            renew_domain(t, "its daemon ended with the supervisor");
        else if (was_renewing(t))
            renew_domain(t, "the dead supervisor had begun to renew it");
    });
    restart_clocks(t, now_ns());
    return n;
}

std::vector<const seat*> not_returned(const process_table& t) {
    std::vector<const seat*> out;
    for (const auto& s : t.seats)
        if (s->now && s->now->connection < 0 && !s->now->ended && !s->now->port) out.push_back(s.get());
    return out;
}

// Reads the output that a stage wrote while no supervisor read it. Must not be called before the stage is
// dead or has reported that it writes elsewhere: output written after the call would be lost.
void read_alone(process_table& t, seat& s, i32 pid) {
    const std::string path = fmt::format("{}/logs/{}.{}.{}.alone", t.setup->directory,
                                         t.setup->stages[s.stage].spec.name, s.index, pid);
    std::ifstream in(path);
    for (std::string line; in && std::getline(in, line);) s.log->line(pid, line);
    ::unlink(path.c_str());
}

// One CAS per entry: if this supervisor dies here, the next supervisor repairs the remaining entries.
void repair_adopted_entries(process_table& t, const process_records& remembered, const std::string& run_id) {
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        shm::incarnation& e = t.c->entry[k];
        const u64 raw = ring::load(e.identity);
        if (ring::intact(raw)) continue;
        const auto is_ours = [&](u32 pid) {
            return bool(shm::open_member({static_cast<i32>(pid), ring::load(e.start_time)}, run_id));
        };
        const auto value = ring::adopted_entry(*t.c, k, {recorded_processes(remembered), is_ours});
        if (!value) {
            t.log_line(
                fmt::format("entry {} was damaged while no supervisor ran ({:#x}), and its owner can't be "
                            "determined: its process is ended, and the run restarts",
                            k, raw));
            end_unknown_process(e, run_id);
            continue;
        }
        if (!ring::write_back(*t.c, *t.c, {{ring::word_kind::entry, k}, raw}, *value)) continue;
        const ring::entry_word w = ring::entry_word::of(*value);
        t.log_line(
            w.state == ring::entry_state::unused
                ? fmt::format("entry {} was damaged while no supervisor ran ({:#x}): it has no owner", k, raw)
                : fmt::format("entry {} was damaged while no supervisor ran ({:#x}): repaired, it belongs to "
                              "{} (pid {})",
                              k, raw, ring::seat_name(*t.c, w.seat), w.pid));
    }
}

// Idempotent: if this supervisor dies here, the next supervisor repairs the remaining times.
void repair_start_times(process_table& t, const process_records& remembered) {
    ring::known_run known;
    known.processes = recorded_processes(remembered);
    for (const std::string& word : ring::repair_start_times(*t.c, *t.made, known))
        t.log_line(fmt::format("{} was damaged while no supervisor ran: repaired", word));
}

}  // namespace carousel::supervisor
