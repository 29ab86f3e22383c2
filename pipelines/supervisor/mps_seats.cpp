// seat_keeper: stages that share an MPS domain (isolation = "mps"). What is special about them (measured, README "Limits"):
//   - a client whose words are aborted can be ended alone by terminate_client, also in a kernel that never ends; that, and its pidfd,
//     is its fence. Words first: its unfinished events read complete from then on;
//   - one that dies otherwise (fault, abort, exit, a kill from outside) may take every client along, and may leave a server that
//     refuses newcomers. The whole domain is renewed then: all its stages are revoked and killed, their frames wait, server and daemon
//     are killed (their end is the fence), new ones are started. Ring memory is held by fds and survives; nothing is lost.
//   - a GPU fault reaches all clients with one and the same error: whose kernel it was can't be told, so nobody is blamed. If faults come
//     again and again without a frame moved on, the domain is given up for the rest of the run: each stage gets a GPU context of its
//     own, and the guilty one shows itself (attempts, dead letters, failure as ever).
//   - a stage that was just starting finds no device then. Until all are back that is the same end of the domain; the recovery log
//     tells of each death into which end it fell, and whether it was the process's own.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps_domain.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {
namespace {
constexpr u32 max_faults_in_row = 3;  ///< of the domain, with no frame delivered in between
}

void seat_keeper::use_domain(mps_domain* domain) {
    domain_ = domain;
    if (domain_ != nullptr)
        domain_->on_death([this] { renew_domain("its daemon has died"); });
}

/// Is this stage to be a client?
bool seat_keeper::wants_domain(const seat& s) const noexcept {
    return domain_ != nullptr && setup_->stages[s.stage].mps && !account_.domain_given_up;
}

bool seat_keeper::may_start(const seat& s) const noexcept { return !wants_domain(s) || (domain_->is_up() && !renewing_); }

/// A death that nobody can bound: see above. Asked before the burial's first step.
bool seat_keeper::breaks_domain(const seat& s, const life& l) const noexcept {
    const bool unasked = !l.by_us || l.ended;  // one that we mean to end is ended by terminate_client, unless it was quicker
    return is_client(l) && !l.let_go && unasked && !through(s.stage) && !ending_ && !paused_;
}

bool seat_keeper::is_client(const life& l) const noexcept { return domain_ != nullptr && l.domain != 0 && !domain_->has_ended(l.domain); }

/// Nothing of a life that has ended writes any more.
bool seat_keeper::fence_is_known(const life& l) const noexcept { return !is_client(l) || l.let_go || l.how.through || ending_ || paused_; }

// Of an innocent one nothing is held against it.
void seat_keeper::excuse(life& l) const noexcept {
    if (!is_client(l) || l.how.deadline) return;
    const bool of_the_device = l.how.known && l.how.signal == 0 &&
                               (l.how.exit_code == exit_code::gpu_fault || (l.how.exit_code == exit_code::no_device && !l.how.was_ready));
    if (of_the_device || (renewing_ && !l.breaks)) l.how.outside = true;
    l.excused = l.excused || of_the_device;
}

// Its words are aborted. A stopped process can't be ended by the server: it goes on, and finds itself revoked.
void seat_keeper::end_client(const life& l) {
    shm::signal_pidfd(l.pidfd.get(), SIGCONT);
    domain_->end_client(l.pid, [this, who = l.who](const std::string& why) {
        seat& s = *seats_[who.seat];
        const auto at = std::find_if(s.gone.begin(), s.gone.end(),
                                     [&](const auto& g) { return g->who.entry == who.entry && g->who.epoch == who.epoch; });
        if (at != s.gone.end()) client_ended(s, **at, why);
    });
}

void seat_keeper::client_ended(seat& s, life& l, const std::string& why) {
    if (l.pidfd && !l.ended) shm::signal_pidfd(l.pidfd.get(), SIGKILL);
    if (l.tool_pidfd) shm::signal_pidfd(l.tool_pidfd.get(), SIGKILL);
    l.let_go = why.empty();
    if (!l.let_go && is_client(l) && !l.how.through) renew_domain(fmt::format("{} (pid {}) can't be ended alone: {}", s.label, l.pid, why));
    advance(s, l, now_ns());
}

void seat_keeper::renew_domain(const std::string& why) {
    if (domain_ == nullptr || renewing_ || ending_ || paused_) return;
    renewing_ = true;
    ++account_.domain_faults;
    account_.domain_ends += account_.domain_whole ? 1 : 0;
    account_.domain_whole = false;
    const u32 over = domain_->generation();
    say(fmt::format("the MPS domain is renewed with all its stages: {}", why));
    // Words first, all of them; only then the server, whose end decides about events that words may still stand behind.
    for (auto& s : seats_) {
        if (s->spare && s->spare->domain == over) end_spare(*s);
        if (!s->now || s->now->domain != over || s->now->seen_dead_ns != 0) continue;
        if (died_by_itself(*s->now)) {  // beside the one whose death was seen first
            bury(*s);
            continue;
        }
        s->now->how.asked = s->now->how.outside = s->now->by_us = s->now->with_domain = true;
        tell_end(*s, *s->now);  // before it is killed: a supervisor that finds it dead has no other word of this
        bury(*s);
    }
    for (auto& s : seats_) {
        for (auto& l : s->gone) {
            if (l->domain != over) continue;
            if (!l->fenced && !l->with_domain && !l->breaks) tell_end(*s, *l);
            if (!l->ended && l->pidfd) shm::signal_pidfd(l->pidfd.get(), SIGKILL);  // also those that wait for terminate_client
        }
    }
    domain_->renew([this](const std::string& failed) { domain_renewed(failed); });
}

/// Does its note tell of a death of its own, by nothing that reaches all clients?
bool seat_keeper::died_by_itself(const life& l) const noexcept {
    const u64 note = ring::load(c_->entry[l.who.entry].exit_note);
    const u64 signal = note >> 8U & 0xFFU, code = note & 0xFFU;
    return note >> 32U == 1 && (signal != 0 || (code != exit_code::gpu_fault && code != exit_code::no_device));
}

// For whoever asks which deaths belong together, and which of them is nobody's own (`carousel chaos`).
void seat_keeper::tell_end(const seat& s, const life& l) {
    if (l.pid == 0 || through(s.stage)) return;
    recovery r{s.label, l.pid, l.who.epoch, "", 0, 0, 0, 0, false};
    r.domain_end = account_.domain_ends;
    r.shared = l.with_domain || l.excused;
    recoveries_.tell(r);
}

// It may have gone while nothing could be started anyway (memory and words made anew): nobody would ever start without this.
void seat_keeper::watch_domain() {
    if (domain_ == nullptr || account_.domain_given_up) return;
    if (!domain_->is_up()) return renew_domain("its daemon is gone");
    account_.domain_whole = account_.domain_whole || std::none_of(seats_.begin(), seats_.end(), [this](const auto& s) {
        return wants_domain(*s) && (s->machine.state() == seat_state::starting || s->machine.state() == seat_state::backoff);
    });
}

void seat_keeper::domain_renewed(const std::string& why) {
    renewing_ = false;
    if (!domain_->is_up() && !domain_->has_ended(domain_->generation())) {
        if (!ending_) renew_domain(why);  // in state D: its buffers stay in quarantine until it goes
        return;
    }
    if (!why.empty()) give_domain_up(why);
    const u64 now = now_ns();
    for (auto& s : seats_) {
        for (auto& l : s->gone) advance(*s, *l, now);
        s->clock_base_ns = std::max(s->clock_base_ns, now);
        if (s->start_wanted && !s->now && now >= s->due_ns) start(*s);
    }
}

/// Has a client of that generation been injected with a fault? All get the same error, and the injected one need not be the first.
bool seat_keeper::harm_was_asked(u32 domain) const noexcept {
    const auto asked = [&](const std::unique_ptr<life>& l) { return l && l->domain == domain && l->how.injected; };
    return std::any_of(seats_.begin(), seats_.end(),
                       [&](const auto& s) { return asked(s->now) || std::any_of(s->gone.begin(), s->gone.end(), asked); });
}

// Called with each death that was excused, unless it was asked for. Those of stages that were just starting count, too: a new server in
// which nothing can be set up would be renewed for ever.
void seat_keeper::count_fault() {
    u64 moved = 0;
    for (u32 k = 0; k < std::min(c_->links, shm::max_links); ++k) moved += ring::load(c_->link[k].tail);
    faults_in_row_ = moved != moved_at_fault_ ? 1 : faults_in_row_ + 1;
    moved_at_fault_ = moved;
    if (faults_in_row_ >= max_faults_in_row) give_domain_up(fmt::format("{} faults in a row and no frame delivered in between", faults_in_row_));
}

void seat_keeper::give_domain_up(const std::string& why) {
    if (account_.domain_given_up) return;
    account_.domain_given_up = true;
    say(fmt::format("the MPS domain is given up ({}): its stages go on with a GPU context each, as with isolation = \"process\"", why));
}

}  // namespace carousel::supervisor
