#include "supervisor/processes/mps_seats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/policy/mps_policy.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 server_patience_ns = 250 * ns_per_ms;
/// Limit for the end of an old server during a rebuild: a server in state D may never end.
constexpr u64 longest_end_ns = 10 * ns_per_s;
/// Limit for R2 before a server is ended: without a free entry, or with damaged words, R2 may need the end of
/// other processes.
constexpr u64 longest_revocation_ns = ns_per_s;

[[nodiscard]] bool is_client(const process_table& t, const process& p) noexcept {
    return t.domain != nullptr && p.mps.generation != 0 && !t.domain->has_ended(p.mps.generation);
}

/// True for a client of a generation that is being ended, or has ended. Numbers grow: the spare domain has a
/// higher one than the serving domain.
[[nodiscard]] bool is_previous_generation(const process_table& t, const process& p) noexcept {
    return t.domain != nullptr && p.mps.generation != 0 && p.mps.generation < t.domain->generation();
}

/// True if terminate_client can end the process.
[[nodiscard]] bool is_reachable(const process_table& t, const process& p) noexcept {
    return is_client(t, p) && p.mps.generation == t.domain->generation() && t.domain->is_up() &&
           !p.mps.with_domain && !p.how.through;
}

[[nodiscard]] client_view view_of(const process_table& t, const process& p, bool through) noexcept {
    const bool ends = is_previous_generation(t, p) && now_ns() - p.ended_ns < longest_end_ns;
    return {is_client(t, p), p.mps.terminated, p.by_supervisor, p.ended, through, t.ending, t.paused, ends};
}

/// True if a client of that generation had a fault injected. All clients get the same error, and the client
/// with the injected fault is not necessarily the first client that dies.
bool fault_was_injected(const process_table& t, u32 domain) noexcept {
    const auto restart_requested = [&](const std::unique_ptr<process>& p) {
        return p && p->mps.generation == domain && p->how.injected;
    };
    return std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        return restart_requested(s->now) || std::any_of(s->gone.begin(), s->gone.end(), restart_requested);
    });
}

void abandon_domain(process_table& t, const std::string& why) {
    if (t.account.domain_abandoned) return;
    t.account.domain_abandoned = true;
    t.log_line(
        fmt::format("the MPS domain is given up ({}): its stages continue with one GPU context each, as with "
                    "isolation = \"process\"",
                    why));
}

/// True if process `p` has frames in progress.
bool has_work(const process_table& t, const seat& s, const process& p) noexcept {
    if (!p.sequences.empty()) return true;
    const shm::seat_block& sb = t.made->seat[s.index];
    for (u32 j = sb.first_job; j < std::min(sb.first_job + sb.jobs, shm::max_jobs); ++j) {
        const auto w = ring::job_word::of(ring::load(t.c->job[j]));
        if (w.epoch == p.incarnation.epoch && w.state != ring::job_state::idle) return true;
    }
    return false;
}

/// Moves each process of a stage into the domain, or out of it, if the process is not where wants_domain()
/// requires it to be.
void move_stage(process_table& t, u32 stage) {
    for (auto& s : t.seats) {
        if (s->stage != stage || !s->now || s->now->by_hand) continue;
        if ((s->now->mps.generation != 0) == wants_domain(t, *s)) continue;
        end_standby(*s);
        s->now->how.restart_requested = s->now->how.outside = s->now->by_supervisor = s->now->mps.moved =
            true;
        in_order(t, [&] { retire(t, *s); });
    }
}

void log_trial(const process_table& t) {
    if (!t.trial.in_progress())
        return t.log_line("no stage faulted when run alone: all stages return to the shared MPS domain");
    t.log_line(
        fmt::format("{} now runs in its own GPU context, to test whether it causes the MPS domain's faults",
                    t.setup->stages[t.trial.on_trial].spec.name));
}

/// Acquits the stage on trial.
void move_on(process_table& t) {
    const u32 acquitted = t.trial.on_trial;
    t.trial.acquit();
    log_trial(t);
    move_stage(t, acquitted);
    if (t.trial.in_progress()) move_stage(t, t.trial.on_trial);
}

/// Starts a trial. The suspects are the stages that had work in the faulted domain; one suspect at a time
/// works outside of the domain.
void begin_trial(process_table& t, u32 generation) {
    std::vector<u32> suspects;
    for (const auto& s : t.seats) {
        const auto suspect = [&](const std::unique_ptr<process>& p) {
            return p && p->mps.generation == generation && has_work(t, *s, *p);
        };
        if ((suspect(s->now) || std::any_of(s->gone.begin(), s->gone.end(), suspect)) &&
            std::find(suspects.begin(), suspects.end(), s->stage) == suspects.end())
            suspects.push_back(s->stage);
    }
    t.trial.begin(std::move(suspects));
    if (t.trial.in_progress()) log_trial(t);
}

/// True if the stage on trial has committed its frames in flight and one more frame, or has nothing left to
/// do.
bool has_stood_trial(const process_table& t) noexcept {
    const u32 stage = t.trial.on_trial;
    return std::all_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        if (s->stage != stage) return true;
        if (t.through(stage)) return true;
        return s->now && s->now->mps.generation == 0 &&
               ring::load(t.c->entry[s->now->incarnation.entry].commits) > t.made->stage[stage].in_flight;
    });
}

// Counts a fault of the domain, once per generation; called for each excused death that was not injected.
// Deaths of stages that were starting count, too, because otherwise a new server in which no stage can start
// would be renewed indefinitely.
void count_fault(process_table& t, u32 generation) {
    if (generation == t.faults.generation) return;
    t.faults.generation = generation;
    u64 moved = 0;
    for (u32 k = 0; k < std::min(t.c->links, shm::max_links); ++k) moved += ring::load(t.c->link[k].tail);
    const bool over = t.faults.add(moved);
    if (t.trial.in_progress()) {
        t.log_line(
            fmt::format("{} was not in the MPS domain when the domain faulted, so it returns to the domain",
                        t.setup->stages[t.trial.on_trial].spec.name));
        move_on(t);
    } else if (t.faults.in_row == faults_before_trial) {
        begin_trial(t, generation);
    }
    // The faults during a trial are bounded by the number of suspects.
    if (over && !t.trial.in_progress())
        abandon_domain(t, fmt::format("{} faults in a row without a delivered frame", t.faults.in_row));
}

void client_ended(process_table& t, seat& s, process& p, const std::string& why) {
    if (p.pidfd && !p.ended) shm::signal_pidfd(p.pidfd.get(), SIGKILL);
    if (p.tool_pidfd) shm::signal_pidfd(p.tool_pidfd.get(), SIGKILL);
    p.mps.terminated = why.empty();
    p.mps.terminating = false;
    if (!p.mps.terminated && is_client(t, p) && !is_previous_generation(t, p) && !p.how.through)
        renew_domain(t, fmt::format("{} (pid {}) can't be ended separately: {}", s.label, p.pid, why));
    poll_retirement(t, s, p, now_ns());
}

void poll_ended_processes(process_table& t) {
    const u64 now = now_ns();
    for (auto& s : t.seats)
        for (auto& p : s->gone) poll_retirement(t, *s, *p, now);
}

/// True if every stage of the serving domain has a standby that can take over, so that the end of the domain
/// costs less time than a fresh process for one stage.
bool all_stand_by(const process_table& t) noexcept {
    if (t.domain == nullptr || t.renewing || t.ending || t.paused || !t.domain->has_spare()) return false;
    return std::all_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        if (!s->now || s->now->mps.generation != t.domain->generation() || t.through(s->stage)) return true;
        return s->standby && s->standby->standing_by && !s->standby->kill_sent &&
               s->standby->mps.generation == t.domain->spare_generation() &&
               s->machine.state() == seat_state::running &&
               ring::load(t.c->entry[s->now->incarnation.entry].commits) != 0;
    });
}

/// The holder of the seat is ended because its domain ends.
void end_with_domain(process_table& t, seat& s) {
    if (!died_by_itself(
            // a process that died by itself has caused its own death, like the process whose death was
            // detected first
            ring::load(t.c->entry[s.now->incarnation.entry].exit_note))) {
        s.now->how.restart_requested = s.now->how.outside = s.now->by_supervisor = s.now->mps.with_domain =
            true;
        report_end(t, s, *s.now);  // reported before the process is killed, because a later supervisor that
                                   // finds the process dead has no other record of the cause
    }
    retire(t, s);
}

/// Ends the holders of seats, and the standbys, in any domain except the generation `kept`. Returns true if
/// there was such a holder.
bool end_clients_outside(process_table& t, u32 kept) {
    bool found = false;
    for (auto& s : t.seats) {
        const auto is_outside = [&](const process* p) {
            return p != nullptr && p->mps.generation != 0 && p->mps.generation != kept;
        };
        if (is_outside(s->standby.get())) end_standby(*s);
        if (!is_outside(s->now.get()) || s->now->seen_dead_ns != 0) continue;
        found = true;
        end_with_domain(t, *s);
    }
    return found;
}

/// True if a word of a client of a domain that is being ended may still be committed.
bool awaits_revocation(const process_table& t, u32 kept) noexcept {
    const auto may_commit = [&](const std::unique_ptr<process>& p) {
        return p && is_client(t, *p) && p->mps.generation != kept && !is_revoked(*p) && !is_fenced(*p) &&
               p->incarnation.epoch != 0 && !p->how.through;
    };
    return std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        return may_commit(s->now) || std::any_of(s->gone.begin(), s->gone.end(), may_commit);
    });
}

void domain_is_up(process_table& t, const std::string& why) {
    t.renewing = false;
    if (!t.domain->is_up() && !t.domain->has_ended(t.domain->generation())) {
        if (!t.ending)
            // a process in state D: its buffers stay in quarantine until it has ended
            renew_domain(t, why.empty() ? "its daemon has died" : why);
        return;
    }
    if (!why.empty()) abandon_domain(t, why);
    // A standby of the stage on trial may have taken over in the spare domain before the trial began.
    if (t.trial.in_progress()) move_stage(t, t.trial.on_trial);
    const u64 now = now_ns();
    for (auto& s : t.seats) {
        // its standby had taken over when the spare domain died
        if (s->now && s->now->seen_dead_ns == 0 && is_previous_generation(t, *s->now)) end_with_domain(t, *s);
        s->clock_base_ns = std::max(s->clock_base_ns, now);
        if (s->start_wanted && !s->now && now >= s->due_ns)
            t.todo.push_back({work::kind::start, s->index, {}});
    }
}

}  // namespace

void use_domain(process_table& t, mps_domain* domain) {
    t.domain = domain;
    if (t.domain != nullptr) t.domain->on_death([&t] { renew_domain(t, "its daemon has died"); });
}

bool wants_domain(const process_table& t, const seat& s) noexcept {
    return t.domain != nullptr && t.setup->stages[s.stage].mps && !t.account.domain_abandoned &&
           !t.trial.is_alone(s.stage);
}

bool may_start(const process_table& t, const seat& s) noexcept {
    return !wants_domain(t, s) || (t.domain->is_up() && !t.renewing);
}

bool takes_over_jointly(const process_table& t) noexcept {
    return std::all_of(t.seats.begin(), t.seats.end(), [&t](const auto& s) {
        const stage_spec& spec = t.setup->stages[s->stage].spec;
        return !wants_domain(t, *s) || spec.standby || spec.is_port();
    });
}

u32 generation_for(const process_table& t, const seat& s, bool standby) noexcept {
    if (!wants_domain(t, s)) return 0;
    return standby && takes_over_jointly(t) ? t.domain->spare_generation() : t.domain->generation();
}

bool may_stand_by(const process_table& t, const seat& s) noexcept {
    return may_start(t, s) && (!wants_domain(t, s) || generation_for(t, s, true) != 0);
}

bool standby_fits(const process_table& t, const seat& s) noexcept {
    if (!wants_domain(t, s)) return s.standby->mps.generation == 0;
    const bool ends = s.now->mps.breaks || t.renewing;
    const u32 place = ends ? t.domain->spare_generation() : t.domain->generation();
    return place != 0 && s.standby->mps.generation == place;
}

bool death_breaks_domain(const process_table& t, const seat& s, const process& p) noexcept {
    return breaks_domain(view_of(t, p, t.has_finished(s.stage, p.how)));
}

bool fence_is_known(const process_table& t, const process& p) noexcept {
    return device_is_quiet(view_of(t, p, p.how.through));
}

void excuse_process(const process_table& t, process& p) noexcept {
    if (!is_client(t, p)) return;
    const excuse why = excuse_for(p.how, t.renewing || is_previous_generation(t, p), p.mps.breaks);
    if (why != excuse::none) p.how.outside = true;
    p.mps.excused = p.mps.excused || why == excuse::device;
}

bool ends_alone(const process_table& t, const process& p) noexcept {
    return is_reachable(t, p) && !t.renewing;
}

// Also while the domain is renewed: the call comes before the end of the server.
bool can_terminate_client(const process_table& t, const process& p) noexcept {
    return is_reachable(t, p) && p.by_supervisor;
}

void end_client(process_table& t, process& p) {
    p.mps.terminating = true;
    shm::signal_pidfd(p.pidfd.get(), SIGCONT);
    t.domain->end_client(p.pid, [&t, incarnation = p.incarnation](const std::string& why) {
        seat& s = *t.seats[incarnation.seat];
        const auto at = std::find_if(s.gone.begin(), s.gone.end(), [&](const auto& g) {
            return g->incarnation.entry == incarnation.entry && g->incarnation.epoch == incarnation.epoch;
        });
        if (at != s.gone.end()) in_order(t, [&] { client_ended(t, s, **at, why); });
    });
}

void domain_breaks(process_table& t, seat& s, process& p) {
    // The process has taken over in the spare domain and dies before that domain serves: the next poll renews
    // it.
    if (t.renewing && p.mps.generation > t.renewed) return;
    p.mps.broke = true;
    if (p.mps.excused && !fault_was_injected(t, p.mps.generation)) count_fault(t, p.mps.generation);
    if (!is_previous_generation(t, p)) renew_domain(t, fmt::format("{} (pid {}) died in it", s.label, p.pid));
    report_end(t, s, p);
}

bool end_client_with_domain(process_table& t, seat& s, const std::string& why) {
    const process& p = *s.now;
    const bool all = ends_alone(t, p) && all_stand_by(t);
    const std::string text = fmt::format("{} (pid {}) {}", s.label, p.pid, why);
    in_order(t, [&] {
        retire(t, s);
        if (all) renew_domain(t, text);
    });
    return all;
}

void renew_domain(process_table& t, const std::string& why) {
    if (t.domain == nullptr || t.renewing || t.ending || t.paused) return;
    t.renewing = true;
    ++t.account.domain_faults;
    t.account.domain_ends += t.account.domain_restored ? 1 : 0;
    t.account.domain_restored = false;
    t.renewed = t.domain->generation();
    t.log_line(fmt::format("the MPS domain is renewed with all its stages: {}", why));
    // First all words are revoked, and standbys in the spare domain take them over. The server is ended only
    // after that, because ending it completes pending events, and words may still depend on these events.
    in_order(t, [&] {
        (void)end_clients_outside(t, t.domain->spare_generation());
        t.todo.push_back({work::kind::renew_domain, 0, {}});
    });
}

void renew_daemon(process_table& t) {
    const u32 over = t.domain->generation(), spare = t.domain->spare_generation();
    // If the spare domain has died, it is ended, too. Standbys may have taken over in it before; their words
    // are revoked first, as above.
    if (end_clients_outside(t, spare)) return t.todo.push_back({work::kind::renew_domain, 0, {}});
    const u64 now = now_ns();
    if (t.renewal_due_ns == 0) t.renewal_due_ns = now + longest_revocation_ns;
    if (now < t.renewal_due_ns && awaits_revocation(t, spare)) return;  // watch_domain() calls again
    t.renewal_due_ns = 0;
    for (auto& s : t.seats) {
        // A holder that could not be revoked in time must not see the events that the end of its server
        // completes.
        if (s->now && s->now->mps.generation != 0 && s->now->mps.generation != spare && !s->now->ended &&
            s->now->pidfd)
            shm::signal_pidfd(s->now->pidfd.get(), SIGKILL);
        for (auto& p : s->gone) {
            if (p->mps.generation == 0 || p->mps.generation == spare) continue;
            if (p->mps.generation == over && !is_fenced(*p) && !p->mps.with_domain && !p->mps.breaks)
                report_end(t, *s, *p);
            // Without a spare domain no call of terminate_client is awaited before the server is ended, also
            // none of an earlier renewal.
            const bool waits = spare != 0 && p->mps.terminating;
            if (!p->ended && p->pidfd && !waits) shm::signal_pidfd(p->pidfd.get(), SIGKILL);
        }
    }
    t.domain->renew(spare,
                    {[&t](const std::string& failed) { in_order(t, [&] { domain_is_up(t, failed); }); },
                     [&t] { in_order(t, [&] { poll_ended_processes(t); }); }});
}

void report_end(process_table& t, const seat& s, const process& p) {
    if (p.pid == 0 || t.through(s.stage)) return;
    recovery r{s.label, p.pid, p.incarnation.epoch, "", 0, 0, 0, 0, false};
    r.domain_end = t.account.domain_ends;
    r.shared = p.mps.with_domain || p.mps.excused;
    t.recoveries.report(r);
}

void update_trial(process_table& t, const seat& s, const process& p) {
    const bool fault = p.how.known && p.how.signal == 0 && p.how.exit_code == exit_code::gpu_fault;
    if (s.stage != t.trial.on_trial || p.mps.generation != 0 || !fault || !self_inflicted(p.how)) return;
    t.trial.blame();
    t.account.domain_blamed = t.trial.blamed;
    t.faults.in_row = 0;
    t.log_line(
        fmt::format("{} (pid {}) has faulted when run alone: it causes the MPS domain's faults, and it keeps "
                    "its own GPU context",
                    s.label, p.pid));
}

namespace {

/// Standbys whose spare domain has died, or has become the serving one without them, and those that have to
/// wait in another domain than before.
void end_misplaced_standbys(process_table& t) {
    if (t.renewing || t.paused) return;
    for (auto& s : t.seats) {
        if (!s->standby || s->standby->kill_sent) continue;
        if (s->standby->mps.generation == generation_for(t, *s, true)) continue;
        end_standby(*s);
    }
}

}  // namespace

// The daemon may have died while no process could be started anyway, because memory and words were being
// rebuilt. Without this check no process would be started again.
void watch_domain(process_table& t) {
    if (t.domain == nullptr) return;
    if (t.renewal_due_ns != 0) return in_order(t, [&] { renew_daemon(t); });
    if (t.account.domain_abandoned) return end_misplaced_standbys(t);
    if (!t.domain->is_up()) return renew_domain(t, "its daemon has ended");
    end_misplaced_standbys(t);
    if (const std::string why = t.domain->take_spare_failure(); !why.empty())
        t.log_line(
            fmt::format("no spare MPS domain: {}; the start is repeated after at most 30 s, and until "
                        "then no standby can wait there",
                        why));
    const bool whole = std::none_of(t.seats.begin(), t.seats.end(), [&t](const auto& s) {
        return wants_domain(t, *s) &&
               (s->machine.state() == seat_state::starting || s->machine.state() == seat_state::backoff);
    });
    t.account.domain_restored = t.account.domain_restored || whole;
    if (t.trial.in_progress() && whole && !t.ending && !t.paused && !t.renewing && has_stood_trial(t)) {
        t.log_line(fmt::format("{} has run alone without a fault: it returns to the MPS domain",
                               t.setup->stages[t.trial.on_trial].spec.name));
        move_on(t);
    }
    if (!whole || t.ending || t.paused || t.renewing) return;
    t.domain->make_spare();
    // A server that dies of a client's fault ends its clients, whose notes name the cause.
    const u64 dead = t.domain->server_dead_since_ns();
    if (dead != 0 && now_ns() - dead > server_patience_ns) renew_domain(t, "its server has died");
}

}  // namespace carousel::supervisor
