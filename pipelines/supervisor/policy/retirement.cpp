#include "supervisor/policy/retirement.hpp"

#include "core/clock.hpp"

namespace carousel::supervisor {
namespace {

using S = retirement_step;
using E = retirement_event;
using A = retirement_action;

struct row {
    S step;
    E event;
    S next;
    A action;
};

// Read as: when `event` is applied to a process in `step`, it moves to `next` and `action` is carried out.
// Pairs that are not listed are refused.
constexpr row table[] = {
    {S::working, E::condemn, S::condemned, A::none},

    {S::condemned, E::condemn, S::condemned, A::none},  // detected by its socket, then by its pidfd
    {S::condemned, E::succession, S::condemned, A::name_successor},
    {S::condemned, E::succeeded, S::doomed, A::doom},
    {S::condemned, E::gone, S::condemned, A::wait},

    {S::doomed, E::condemn, S::doomed, A::none},
    {S::doomed, E::succession, S::doomed, A::none},
    {S::doomed, E::words, S::doomed, A::revoke},
    {S::doomed, E::words_taken, S::revoked, A::none},
    // words first, then the server whose end completes the events
    {S::doomed, E::breaks, S::doomed, A::wait},
    {S::doomed, E::kill_due, S::doomed, A::kill},
    {S::doomed, E::frames, S::doomed, A::requeue},
    {S::doomed, E::verdict_due, S::doomed, A::judge},
    {S::doomed, E::gone, S::fenced_early, A::fence},
    {S::doomed, E::buffers, S::doomed, A::wait},

    {S::revoked, E::condemn, S::revoked, A::none},
    {S::revoked, E::succession, S::revoked, A::none},
    {S::revoked, E::words, S::revoked, A::none},
    {S::revoked, E::breaks, S::revoked, A::renew_domain},
    {S::revoked, E::kill_due, S::revoked, A::kill},
    {S::revoked, E::frames, S::revoked, A::requeue},
    {S::revoked, E::verdict_due, S::revoked, A::judge},
    {S::revoked, E::gone, S::fenced, A::fence},
    {S::revoked, E::buffers, S::revoked, A::wait},

    {S::fenced_early, E::condemn, S::fenced_early, A::none},
    {S::fenced_early, E::succession, S::fenced_early, A::none},
    {S::fenced_early, E::words, S::fenced_early, A::revoke},
    {S::fenced_early, E::words_taken, S::fenced, A::none},
    {S::fenced_early, E::breaks, S::fenced_early, A::wait},
    {S::fenced_early, E::kill_due, S::fenced_early, A::kill},
    {S::fenced_early, E::frames, S::fenced_early, A::requeue},
    {S::fenced_early, E::verdict_due, S::fenced_early, A::judge},
    {S::fenced_early, E::gone, S::fenced_early, A::none},
    {S::fenced_early, E::buffers, S::fenced_early, A::wait},

    {S::fenced, E::condemn, S::fenced, A::none},
    {S::fenced, E::succession, S::fenced, A::none},
    {S::fenced, E::words, S::fenced, A::none},
    {S::fenced, E::breaks, S::fenced, A::renew_domain},
    {S::fenced, E::kill_due, S::fenced, A::kill},
    {S::fenced, E::frames, S::fenced, A::requeue},
    {S::fenced, E::verdict_due, S::fenced, A::judge},
    {S::fenced, E::gone, S::fenced, A::none},
    {S::fenced, E::buffers, S::fenced, A::reclaim},
    {S::fenced, E::buffers_free, S::reclaimed, A::none},

    {S::reclaimed, E::condemn, S::reclaimed, A::none},
    {S::reclaimed, E::succession, S::reclaimed, A::none},
    {S::reclaimed, E::words, S::reclaimed, A::none},
    {S::reclaimed, E::kill_due, S::reclaimed, A::kill},
    {S::reclaimed, E::frames, S::reclaimed, A::none},
    {S::reclaimed, E::verdict_due, S::reclaimed, A::judge},
    {S::reclaimed, E::gone, S::reclaimed, A::none},
    {S::reclaimed, E::buffers, S::reclaimed, A::none},
};

}  // namespace

const char* name_of(S s) noexcept {
    constexpr const char* names[retirement_steps] = {"working",      "condemned", "doomed",   "revoked",
                                                     "fenced_early", "fenced",    "reclaimed"};
    return names[static_cast<u8>(s)];
}

const char* name_of(E e) noexcept {
    constexpr const char* names[retirement_events] = {
        "condemn",  "succession", "succeeded",   "words", "words_taken", "breaks",
        "kill_due", "frames",     "verdict_due", "gone",  "buffers",     "buffers_free"};
    return names[static_cast<u8>(e)];
}

const char* name_of(A a) noexcept {
    constexpr const char* names[retirement_actions] = {"none",         "name_successor", "doom",    "revoke",
                                                       "renew_domain", "kill",           "requeue", "judge",
                                                       "fence",        "reclaim",        "wait",    "refuse"};
    return names[static_cast<u8>(a)];
}

retirement_move on(S step, E event) noexcept {
    for (const row& r : table)
        if (r.step == step && r.event == event) return {r.next, r.action};
    return {step, A::refuse};
}

bool kill_is_due(const kill_view& v) noexcept {
    const u64 patience = v.through ? v.stop_timeout_ns : v.leaving ? ns_per_s : 100 * ns_per_ms;
    const bool due = v.paused || (v.revoked && !v.through && !v.leaving) || v.seen_dead_for_ns > patience;
    return due && v.seen_dead_for_ns >= v.delay_ns;
}

bool verdict_is_due(const verdict_view& v) noexcept {
    if (v.cause_known || v.ended) return true;
    return v.delivered && !v.through && !v.never_restarted && (!v.leaving || v.kill_sent);
}

}  // namespace carousel::supervisor
