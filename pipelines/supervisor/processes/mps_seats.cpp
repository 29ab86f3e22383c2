#include "supervisor/processes/mps_seats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/mps_policy.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"

namespace carousel::supervisor {
namespace {

[[nodiscard]] bool is_client(const process_table& t, const process& p) noexcept {
    return t.domain != nullptr && p.mps.generation != 0 && !t.domain->has_ended(p.mps.generation);
}

/// Of a generation that is being ended, or has ended.
[[nodiscard]] bool is_of_the_past(const process_table& t, const process& p) noexcept {
    return t.domain != nullptr && p.mps.generation != 0 && p.mps.generation != t.domain->generation();
}

[[nodiscard]] client_view view_of(const process_table& t, const process& p, bool through) noexcept {
    return {is_client(t, p), p.mps.let_go, p.by_us, p.ended, through, t.ending || t.paused};
}

/// Has a client of that generation been injected with a fault? All get the same error, and the injected one
/// need not be the first.
bool fault_was_injected(const process_table& t, u32 domain) noexcept {
    const auto asked = [&](const std::unique_ptr<process>& p) {
        return p && p->mps.generation == domain && p->how.injected;
    };
    return std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        return asked(s->now) || std::any_of(s->gone.begin(), s->gone.end(), asked);
    });
}

void give_domain_up(process_table& t, const std::string& why) {
    if (t.account.domain_given_up) return;
    t.account.domain_given_up = true;
    t.say(
        fmt::format("the MPS domain is given up ({}): its stages go on with a GPU context each, as with "
                    "isolation = \"process\"",
                    why));
}

// Called with each death that was excused, unless it was asked for. Those of stages that were just starting
// count, too: a new server in which nothing can be set up would be renewed for ever.
void count_fault(process_table& t) {
    u64 moved = 0;
    for (u32 k = 0; k < std::min(t.c->links, shm::max_links); ++k) moved += ring::load(t.c->link[k].tail);
    if (t.faults.add(moved))
        give_domain_up(t,
                       fmt::format("{} faults in a row and no frame delivered in between", t.faults.in_row));
}

void client_ended(process_table& t, seat& s, process& p, const std::string& why) {
    if (p.pidfd && !p.ended) shm::signal_pidfd(p.pidfd.get(), SIGKILL);
    if (p.tool_pidfd) shm::signal_pidfd(p.tool_pidfd.get(), SIGKILL);
    p.mps.let_go = why.empty();
    if (!p.mps.let_go && is_client(t, p) && !is_of_the_past(t, p) && !p.how.through)
        renew_domain(t, fmt::format("{} (pid {}) can't be ended alone: {}", s.label, p.pid, why));
    look_at(t, s, p, now_ns());
}

void look_at_the_gone(process_table& t) {
    const u64 now = now_ns();
    for (auto& s : t.seats)
        for (auto& p : s->gone) look_at(t, *s, *p, now);
}

void domain_is_up(process_table& t, const std::string& why) {
    t.renewing = false;
    if (!t.domain->is_up() && !t.domain->has_ended(t.domain->generation())) {
        if (!t.ending) renew_domain(t, why);  // in state D: its buffers stay in quarantine until it goes
        return;
    }
    if (!why.empty()) give_domain_up(t, why);
    const u64 now = now_ns();
    for (auto& s : t.seats) {
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
    return t.domain != nullptr && t.setup->stages[s.stage].mps && !t.account.domain_given_up;
}

bool may_start(const process_table& t, const seat& s) noexcept {
    return !wants_domain(t, s) || (t.domain->is_up() && !t.renewing);
}

bool death_breaks_domain(const process_table& t, const seat& s, const process& p) noexcept {
    return breaks_domain(view_of(t, p, t.through(s.stage)));
}

bool fence_is_known(const process_table& t, const process& p) noexcept {
    return device_is_quiet(view_of(t, p, p.how.through));
}

void excuse_process(const process_table& t, process& p) noexcept {
    if (!is_client(t, p)) return;
    const excuse why = excuse_for(p.how, t.renewing || is_of_the_past(t, p), p.mps.breaks);
    if (why != excuse::none) p.how.outside = true;
    p.mps.excused = p.mps.excused || why == excuse::device;
}

bool can_be_let_go(const process_table& t, const process& p) noexcept {
    return is_client(t, p) && p.mps.generation == t.domain->generation() && t.domain->is_up() &&
           !p.mps.with_domain && !p.how.through && p.by_us;
}

void end_client(process_table& t, const process& p) {
    shm::signal_pidfd(p.pidfd.get(), SIGCONT);
    t.domain->end_client(p.pid, [&t, who = p.who](const std::string& why) {
        seat& s = *t.seats[who.seat];
        const auto at = std::find_if(s.gone.begin(), s.gone.end(), [&](const auto& g) {
            return g->who.entry == who.entry && g->who.epoch == who.epoch;
        });
        if (at != s.gone.end()) in_order(t, [&] { client_ended(t, s, **at, why); });
    });
}

void domain_breaks(process_table& t, seat& s, process& p) {
    p.mps.broke = true;
    if (p.mps.excused && !fault_was_injected(t, p.mps.generation)) count_fault(t);
    if (!is_of_the_past(t, p)) renew_domain(t, fmt::format("{} (pid {}) died in it", s.label, p.pid));
    tell_end(t, s, p);
}

void renew_domain(process_table& t, const std::string& why) {
    if (t.domain == nullptr || t.renewing || t.ending || t.paused) return;
    t.renewing = true;
    ++t.account.domain_faults;
    t.account.domain_ends += t.account.domain_whole ? 1 : 0;
    t.account.domain_whole = false;
    const u32 over = t.domain->generation();
    t.say(fmt::format("the MPS domain is renewed with all its stages: {}", why));
    // Words first, all of them; only then the server, whose end decides about events that words may still
    // stand behind.
    in_order(t, [&] {
        for (auto& s : t.seats) {
            if (s->standby && s->standby->mps.generation == over) end_standby(*s);
            if (!s->now || s->now->mps.generation != over || s->now->seen_dead_ns != 0) continue;
            if (!died_by_itself(
                    // else beside the one whose death was seen first
                    ring::load(t.c->entry[s->now->who.entry].exit_note))) {
                s->now->how.asked = s->now->how.outside = s->now->by_us = s->now->mps.with_domain = true;
                tell_end(t, *s, *s->now);  // before it is killed: a supervisor that finds it dead has no
                                           // other word of this
            }
            retire(t, *s);
        }
        t.todo.push_back({work::kind::renew_domain, 0, {}});
    });
}

void renew_daemon(process_table& t) {
    const u32 over = t.domain->generation();
    for (auto& s : t.seats) {
        for (auto& p : s->gone) {
            if (p->mps.generation != over) continue;
            if (!is_fenced(*p) && !p->mps.with_domain && !p->mps.breaks) tell_end(t, *s, *p);
            // also those that wait for terminate_client
            if (!p->ended && p->pidfd) shm::signal_pidfd(p->pidfd.get(), SIGKILL);
        }
    }
    t.domain->renew({[&t](const std::string& failed) { in_order(t, [&] { domain_is_up(t, failed); }); },
                     [&t] { in_order(t, [&] { look_at_the_gone(t); }); }});
}

void tell_end(process_table& t, const seat& s, const process& p) {
    if (p.pid == 0 || t.through(s.stage)) return;
    recovery r{s.label, p.pid, p.who.epoch, "", 0, 0, 0, 0, false};
    r.domain_end = t.account.domain_ends;
    r.shared = p.mps.with_domain || p.mps.excused;
    t.recoveries.tell(r);
}

// It may have gone while nothing could be started anyway (memory and words made anew): nobody would ever
// start without this.
void watch_domain(process_table& t) {
    if (t.domain == nullptr || t.account.domain_given_up) return;
    if (!t.domain->is_up()) return renew_domain(t, "its daemon is gone");
    const bool whole = std::none_of(t.seats.begin(), t.seats.end(), [&t](const auto& s) {
        return wants_domain(t, *s) &&
               (s->machine.state() == seat_state::starting || s->machine.state() == seat_state::backoff);
    });
    t.account.domain_whole = t.account.domain_whole || whole;
    if (whole && !t.ending && !t.paused) t.domain->make_spare();
}

}  // namespace carousel::supervisor
