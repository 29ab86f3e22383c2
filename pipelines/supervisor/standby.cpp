// seat_keeper: warm standbys. A spare is a process of the same stage that has claimed an entry, mapped the rings, opened its device
// and prepared itself, and then sleeps: it bears epoch 0, which owns no word, so nothing that it does or fails to do can harm a
// frame. When the seat's holder dies, raising the epoch and naming the spare are two CASes, and it works. It outlives its supervisor as
// its holder does: it is needed most when things go badly.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/driver_leftovers.hpp"
#include "supervisor/left_run.hpp"
#include "supervisor/mps_domain.hpp"
#include "supervisor/seats.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::supervisor {
namespace {
constexpr u64 longest_spare_delay_ns = 30 * ns_per_s;
}

// The run ends: what only waits for a death that no longer matters may go.
void seat_keeper::no_more_starts() noexcept {
    ending_ = true;
    for (auto& s : seats_) end_spare(*s);
}

void seat_keeper::keep_spare(seat& s, u64 now) {
    if (s.vacant_since_ns != 0 && s.now) {
        const u64 first = ring::load(c_->entry[s.now->who.entry].first_commit_ns);
        if (first > s.vacant_since_ns) {
            recoveries_.tell({s.label, s.vacant_pid, s.vacant_epoch, "", 0, 0, 0, first, s.by_standby});
            say(fmt::format("{} is back as pid {} after {}{}", s.label, s.now->pid, telemetry::describe_span(first - s.vacant_since_ns),
                            s.by_standby ? " (standby)" : ""));
            s.vacant_since_ns = 0;
        }
    }
    if (s.spare && !s.spare->standing_by && !s.spare->kill_sent && now - s.spare->spawned_ns > setup_->start_timeout_ns) {
        say(fmt::format("{}'s standby (pid {}) does not become ready within {} s: it is ended", s.label, s.spare->pid,
                        setup_->start_timeout_ns / ns_per_s));
        s.spare->kill_sent = true;
        end_spare(s);
    }
    // Beside a holder that is still starting only when others before it have worked: a stage that can't is not tried twice at once.
    const bool holder_works = s.now && (s.machine.state() == seat_state::running
                                            ? s.now->how.was_ready
                                            : s.machine.state() == seat_state::starting && s.restarts > 0 && s.machine.fresh_deaths() == 0);
    const bool wanted = setup_->stages[s.stage].standby && !ending_ && !paused_ && memory_there_ && holder_works && !through(s.stage) && may_start(s);
    if (wanted && !s.spare && now >= s.spare_due_ns) start_spare(s, now);
}

void seat_keeper::start_spare(seat& s, u64 now) {
    auto l = std::make_unique<life>();
    l->who = ring::reserve_standby(*c_, s.index);
    if (!l->who) return;  // every entry belongs to an unfenced process: the next tick tries again
    l->spawned_ns = now;
    // Whatever becomes of this one, the next is started later and later, until one of them has said that it is ready.
    s.spare_delay_ns = std::clamp(2 * s.spare_delay_ns, first_delay_ns, longest_spare_delay_ns);
    s.spare_due_ns = now + s.spare_delay_ns;
    try {
        spawn_life(s, *l);
    } catch (const error& e) {
        ring::mark_fenced(*c_, l->who.entry);
        say(fmt::format("{}: no standby: {}", s.label, e.what()));
        return;
    }
    s.spare = std::move(l);
    watch_life(s, *s.spare);
}

// Only behind a holder that has delivered: a standby must not hide that a stage can't work at all, nor outrun its delays.
bool seat_keeper::promote_spare(seat& s) {
    const bool in_work = s.machine.state() == seat_state::running || s.machine.state() == seat_state::starting;
    if (!setup_->stages[s.stage].standby || ending_ || paused_ || s.heir || !in_work) return false;
    if (s.now->how.asked || s.now->by_hand || through(s.stage)) return false;
    const bool tried = s.machine.state() == seat_state::running && ring::load(c_->entry[s.now->who.entry].commits) != 0;
    if (!tried || !s.spare || !s.spare->standing_by) {
        ++account_.no_spare[static_cast<u8>(!s.spare ? why_no_spare::none : !s.spare->standing_by ? why_no_spare::starting : why_no_spare::untried)];
        return false;
    }
    const ring::incarnation_id who = ring::promote(*c_, s.index, s.spare->who.entry);
    if (!who) return false;
    s.spare->who = who;
    count_promotion(s, s.spare->pid);
    return true;
}

void seat_keeper::count_promotion(seat& s, i32 pid) {
    s.by_standby = true;
    s.clock_base_ns = s.spare_due_ns = now_ns();  // the next one is started as soon as this one works
    s.pids.push_back(pid);
    ++s.restarts;
    ++account_.restarts;
    ++account_.promoted;
}

// A STANDBY entry that a dead supervisor has left. Nobody has claimed it: withdrawn, whoever was spawned for it finds no place. Its
// process has died meanwhile: it owned nothing, its entry is free. It lives: it stays, or ends for a reason that is said.
void seat_keeper::adopt_spare(seat& s, u32 entry, const std::string& run_id) {
    shm::incarnation& e = c_->entry[entry];
    if (ring::withdraw(*c_, entry)) return;
    auto l = std::make_unique<life>();
    l->who = {s.index, entry, 0};
    l->pid = static_cast<i32>(ring::entry_word::of(ring::load(e.identity)).pid);
    l->pidfd = open_claimer(e, run_id);
    if (!l->pidfd) {
        ring::mark_fenced(*c_, entry);
        if (l->pid > 0) remove_driver_leftovers(l->pid);
        return;
    }
    l->tool = !setup_->stages[s.stage].prefix.empty();
    l->spawned_ns = now_ns();
    l->standing_by = l->how.was_ready = ring::load(e.live_since_ns) != 0;
    l->domain = wants_domain(s) ? domain_->generation() : 0;
    // The seat names it already: the dead supervisor had decided that it takes over.
    if (ring::seat_word::of(ring::load(c_->seat[s.index].current)).entry == entry) {
        if (const ring::incarnation_id who = ring::promote(*c_, s.index, entry); who) {
            l->who = who;
            count_promotion(s, l->pid);
            s.now = std::move(l);
            return;
        }
    }
    const bool place = !s.spare && setup_->stages[s.stage].standby;
    if (!place) {
        say(fmt::format("{}'s standby (pid {}) is ended: {}", s.label, l->pid,
                        s.spare ? "the dead supervisor has left another one" : "the stage has none any more"));
        shm::signal_pidfd(l->pidfd.get(), SIGKILL);
        ring::doom(*c_, entry);
        l->doomed = l->revoked = l->judged = l->counted = l->let_go = l->kill_sent = true;
        s.gone.push_back(std::move(l));
        return;
    }
    s.spare = std::move(l);
    watch_life(s, *s.spare);
}

void seat_keeper::end_spare(const seat& s) noexcept {
    if (s.spare && s.spare->pidfd) shm::signal_pidfd(s.spare->pidfd.get(), SIGKILL);
}

// It owned nothing: its entry is free as soon as its process is gone.
void seat_keeper::spare_ended(seat& s, u64 now) {
    life& l = *s.spare;
    loop_->forget(l.pidfd.get());
    const exit_status status = reap(l.pidfd.get());
    ring::mark_fenced(*c_, l.who.entry);
    remove_driver_leftovers(l.pid);
    if (l.log.fd() >= 0) {
        loop_->forget(l.log.fd());
        l.log.close(*s.log, l.pid);
    }
    if (!ending_ && !paused_ && status.known && status.signal == 0)
        say(fmt::format("{}'s standby (pid {}) has left (exit code {})", s.label, l.pid, status.exit_code));
    s.spare_due_ns = std::max(s.spare_due_ns, now + first_delay_ns);
    s.spare.reset();
}

}  // namespace carousel::supervisor
