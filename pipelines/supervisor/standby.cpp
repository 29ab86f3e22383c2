// seat_keeper: warm standbys. A spare is a process of the same stage that has claimed an entry, mapped the rings, opened its device
// and prepared itself, and then sleeps: it bears epoch 0, which owns no word, so nothing that it does or fails to do can harm a
// frame. When the seat's holder dies, raising the epoch and naming the spare are two CASes, and it works.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/driver_leftovers.hpp"
#include "supervisor/seats.hpp"

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
            s.vacant_since_ns = 0;
        }
    }
    if (s.spare && !s.spare->standing_by && now - s.spare->spawned_ns > setup_->start_timeout_ns) end_spare(s);
    const bool wanted = setup_->stages[s.stage].standby && !ending_ && !paused_ && memory_there_ && s.now && s.now->how.was_ready &&
                        s.machine.state() == seat_state::running && !through(s.stage) && may_start(s);
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
    if (!s.spare || !s.spare->standing_by || ending_ || paused_ || s.heir || s.machine.state() != seat_state::running) return false;
    if (s.now->how.asked || s.now->by_hand || through(s.stage) || ring::load(c_->entry[s.now->who.entry].commits) == 0) return false;
    const ring::incarnation_id who = ring::promote(*c_, s.index, s.spare->who.entry);
    if (!who) return false;
    s.spare->who = who;
    s.by_standby = true;
    s.clock_base_ns = now_ns();
    s.pids.push_back(s.spare->pid);
    ++s.restarts;
    ++account_.restarts;
    ++account_.promoted;
    s.spare_due_ns = now_ns() + first_delay_ns;
    return true;
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
