#include "supervisor/policy/state_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "core/enum_names.hpp"
#include "core/resource_limit.hpp"
#include "device/device_failure.hpp"

namespace carousel::supervisor {
namespace {

using S = seat_state;
using E = seat_event;
using A = seat_action;

struct row {
    S state;
    E event;
    S next;
    A action;
};

// Read as: when `event` occurs in `state`, the seat moves to `next` and requests `action`. Pairs that are not
// listed are refused. `died_fresh` moves to backoff here; the fifth in a row moves to failed (see on()).
// `died_refusing` counts as `died_fresh` if an earlier process has worked, because a user may be editing the
// file at the moment.
constexpr row table[] = {
    {S::starting, E::ready, S::running, A::none},
    {S::starting, E::died_outside, S::starting, A::start},
    {S::starting, E::died_fresh, S::backoff, A::delay},
    {S::starting, E::died_spent, S::starting, A::start},
    {S::starting, E::died_for_good, S::failed, A::fail},
    {S::starting, E::died_refusing, S::failed, A::fail},
    {S::starting, E::finished, S::done, A::none},
    {S::starting, E::take_down, S::stopping, A::end},
    {S::starting, E::pause, S::stopped, A::suspend},

    {S::running, E::died_outside, S::starting, A::start},
    {S::running, E::died_fresh, S::backoff, A::delay},
    {S::running, E::died_spent, S::starting, A::start},
    {S::running, E::died_for_good, S::failed, A::fail},
    {S::running, E::died_refusing, S::failed, A::fail},
    {S::running, E::finished, S::done, A::none},
    {S::running, E::pause, S::stopped, A::suspend},
    // also if the process was stopped by a SIGSTOP from outside
    {S::running, E::resume, S::running, A::resume},
    {S::running, E::take_down, S::stopping, A::end},

    {S::stopped, E::resume, S::running, A::resume},
    {S::stopped, E::pause, S::stopped, A::none},
    {S::stopped, E::ready, S::stopped, A::suspend},  // the successor of a paused process was starting when
                                                     // the run was adopted by this supervisor
    {S::stopped, E::died_outside, S::starting, A::start},
    {S::stopped, E::died_fresh, S::backoff, A::delay},
    {S::stopped, E::died_spent, S::starting, A::start},
    {S::stopped, E::died_for_good, S::failed, A::fail},
    {S::stopped, E::died_refusing, S::failed, A::fail},
    {S::stopped, E::finished, S::done, A::none},
    {S::stopped, E::take_down, S::stopping, A::end},

    {S::stopping, E::ready, S::stopping, A::none},
    {S::stopping, E::died_outside, S::down, A::none},
    {S::stopping, E::died_fresh, S::down, A::none},
    {S::stopping, E::died_spent, S::down, A::none},
    {S::stopping, E::died_for_good, S::down, A::none},
    {S::stopping, E::died_refusing, S::down, A::none},
    {S::stopping, E::finished, S::done, A::none},
    {S::stopping, E::take_down, S::stopping, A::none},

    {S::backoff, E::due, S::starting, A::start},
    {S::backoff, E::take_down, S::down, A::none},
    {S::backoff, E::bring_up, S::starting, A::start},

    {S::down, E::bring_up, S::starting, A::start},
    {S::down, E::take_down, S::down, A::none},
    {S::down, E::spawned, S::starting, A::none},  // a stage started by hand takes the seat
    {S::failed, E::bring_up, S::starting, A::start},
    {S::failed, E::spawned, S::starting, A::none},
    {S::failed, E::take_down, S::down, A::none},
    {S::starting, E::spawned, S::starting, A::none},
    {S::starting, E::bring_up, S::starting, A::none},
    {S::running, E::bring_up, S::running, A::none},

    {S::starting, E::vacated, S::vacant, A::none},
    {S::vacant, E::spawned, S::starting, A::none},  // a program has attached
    {S::vacant, E::take_down, S::down, A::none},
    {S::vacant, E::bring_up, S::vacant, A::none},
};

bool is_fault(int signal) noexcept {
    constexpr int faults[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
    return std::find(std::begin(faults), std::end(faults), signal) != std::end(faults);
}

}  // namespace

BOOST_DESCRIBE_ENUM(seat_state, starting, running, stopping, stopped, backoff, failed, down, done, vacant)
const char* name_of(seat_state s) noexcept { return enum_name(s); }

bool self_inflicted(const death& d) noexcept {
    if (d.injected) return false;
    if (d.deadline) return true;
    if (d.outside || !d.known) return false;
    if (d.signal != 0) return is_fault(d.signal);
    if (lacked_resources(d)) return false;
    // An exit before the end of the run counts as a fault, whatever its code; otherwise a stage that keeps
    // exiting with code 0 would be restarted indefinitely.
    return d.exit_code != exit_code::gave_back || !d.may_give_back;
}

bool lacked_resources(const death& d) noexcept {
    return d.known && !d.deadline && d.signal == 0 && d.exit_code == exit_code::no_resources && !d.was_ready;
}

seat_event classify(const death& d, restart_policy policy) noexcept {
    if (d.through) return seat_event::finished;
    const bool own = self_inflicted(d);
    if (d.restart_requested) return seat_event::died_outside;
    if (lacked_resources(d)) return seat_event::died_outside;
    if (policy == restart_policy::no) return seat_event::died_for_good;
    if (policy == restart_policy::on_failure && own && !d.deadline && d.signal == 0 && d.exit_code == 0)
        return seat_event::died_for_good;  // the exit code means success, but the run is not over
    // not restarted, because a restart would give the same result
    if (own && d.signal == 0 && !d.deadline && !d.was_ready) {
        if (d.exit_code == exit_code::no_device) return seat_event::died_for_good;
        if (d.exit_code == exit_code::usage) return seat_event::died_refusing;
    }
    if (!own) return seat_event::died_outside;
    if (d.commits > 0) return seat_event::died_spent;
    return d.exposed && d.signal != 0 && !d.deadline ? seat_event::died_exposed : seat_event::died_fresh;
}

std::string describe(const death& d) {
    const char* injected = d.injected ? ", injected" : "";
    if (d.deadline)
        return fmt::format("{}{}", d.was_ready ? "deadline missed" : "not ready in time", injected);
    if (!d.known) return "unknown";
    if (d.signal == 0)
        return fmt::format("exit code {}{}{}", d.exit_code,
                           d.exit_code == exit_code::gpu_fault                      ? " (GPU fault)"
                           : d.exit_code == exit_code::gpu_lost                     ? " (GPU lost)"
                           : d.exit_code == exit_code::no_resources                 ? " (no resources)"
                           : d.exit_code == exit_code::gave_back && d.may_give_back ? " (returned its frames)"
                                                                                    : "",
                           injected);
    const char* name = sigabbrev_np(d.signal);
    return fmt::format("signal {} (SIG{}){}{}", d.signal, name != nullptr ? name : "?",
                       d.out_of_memory ? " of the kernel's out-of-memory killer" : "", injected);
}

seat_action seat_machine::on(seat_event e, u64 now) noexcept {
    if (e == E::died_refusing && proven_) e = E::died_fresh;
    const bool for_ever = e == E::died_exposed;
    if (for_ever) e = E::died_fresh;
    if (e == E::resume && paused_ && (state_ == S::starting || state_ == S::backoff)) {
        paused_ = false;  // the paused process has died; its successor will not be paused
        return A::none;
    }
    for (const row& r : table) {
        if (r.state != state_ || r.event != e) continue;
        S next = r.next;
        A action = r.action;
        if (e == E::died_fresh && action == A::delay) {
            ++fresh_deaths_;
            delay_ns_ = std::min(first_delay_ns << std::min(fresh_deaths_ - 1, 10U), longest_delay_ns);
            if (fresh_deaths_ >= max_fresh_deaths && !for_ever) {
                next = S::failed;
                action = A::fail;
            }
        }
        if (e == E::died_spent || e == E::bring_up) fresh_deaths_ = 0;
        if (e == E::ready && paused_) {
            next = S::stopped;
            action = A::suspend;
        }
        if (e == E::pause) paused_ = true;
        if (e == E::resume || e == E::take_down || e == E::bring_up || e == E::finished) paused_ = false;
        if (next == S::failed) paused_ = false;
        if (next != state_ || action == A::start) since_ns_ = now;
        state_ = next;
        proven_ = proven_ || state_ == S::running;
        return action;
    }
    return A::refuse;
}

}  // namespace carousel::supervisor
