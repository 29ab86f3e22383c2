#include "supervisor/policy/retirement.hpp"

#include <initializer_list>

#include "core/clock.hpp"
#include "core/enum_names.hpp"

namespace carousel::supervisor {
namespace {

using S = retirement_step;
using A = retirement_action;

/// A set of steps.
constexpr u8 in(std::initializer_list<S> steps) noexcept {
    u8 set = 0;
    for (const S s : steps) set = static_cast<u8>(set | 1U << static_cast<u8>(s));
    return set;
}

struct row {
    A action;
    u8 steps;  ///< the steps in which the action is done
};

// The actions, in the order in which a poll goes through them. R1 to R5 are the steps of ring/PROTOCOL.md.
// renew_domain waits until the words are revoked, because ending the server completes the pending events, and
// unfinished work would then look finished.
constexpr row sequence[] = {
    {A::succeed, in({S::condemned})},               // R1
    {A::revoke, in({S::doomed, S::fenced_early})},  // R2
    {A::renew_domain, in({S::revoked, S::fenced})},
    {A::kill, in({S::doomed, S::revoked, S::fenced_early, S::fenced, S::reclaimed})},  // R3
    {A::requeue, in({S::doomed, S::revoked, S::fenced_early, S::fenced})},             // R4
    {A::judge, in({S::doomed, S::revoked, S::fenced_early, S::fenced, S::reclaimed})},
    {A::fence, in({S::doomed, S::revoked})},
    {A::reclaim, in({S::fenced})},  // R5
};

}  // namespace

BOOST_DESCRIBE_ENUM(retirement_step, working, condemned, doomed, revoked, fenced_early, fenced, reclaimed)
BOOST_DESCRIBE_ENUM(retirement_action, succeed, revoke, renew_domain, kill, requeue, judge, fence, reclaim)

const char* name_of(S s) noexcept { return enum_name(s); }
const char* name_of(A a) noexcept { return enum_name(a); }

bool is_done_in(S step, A action) noexcept {
    return (sequence[static_cast<u8>(action)].steps & 1U << static_cast<u8>(step)) != 0;
}

S step_after(S step, A action) noexcept {
    switch (action) {
        case A::succeed:
            return S::doomed;
        case A::revoke:
            return step == S::fenced_early ? S::fenced : S::revoked;
        case A::fence:
            return step == S::doomed ? S::fenced_early : S::fenced;
        case A::reclaim:
            return S::reclaimed;
        case A::renew_domain:
        case A::kill:
        case A::requeue:
        case A::judge:
            break;
    }
    return step;
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
