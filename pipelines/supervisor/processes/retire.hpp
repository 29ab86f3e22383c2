#pragma once
// Retires a process that is dead, hung or unwanted: policy/retirement.hpp decides what to do and in which
// order, this file carries it out.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Retires the seat's process, if there is one: at once, or after the work in progress.
void retire(process_table& t, seat& s);
/// Polls a process that is being retired: goes through the sequence of actions once.
void poll_retirement(process_table& t, seat& s, process& p, u64 now);
/// Calls `first`, and then does the work that has accumulated, in the order of arrival. A call inside another
/// in_order() only calls `first`.
template <typename F>
void in_order(process_table& t, F&& first);
/// Does the work that has accumulated.
void settle(process_table& t);
/// To be called before the words of the process are changed: records the frames that it had in flight, and
/// its last note.
void record_death(process_table& t, seat& s, process& p);
/// Returns the number of the seat's buffers that stay in quarantine until a process has ended.
[[nodiscard]] u32 count_quarantined(const process_table& t, const seat& s) noexcept;
/// True if the retirement of the process is complete and the object can be dropped.
[[nodiscard]] inline bool is_over(const process& p) noexcept {
    return p.ended && p.step == retirement_step::reclaimed && p.judged && !p.tool_pidfd;
}
[[nodiscard]] inline bool is_condemned(const process& p) noexcept {
    return p.step != retirement_step::working;
}
[[nodiscard]] inline bool is_doomed(const process& p) noexcept { return p.step > retirement_step::condemned; }
[[nodiscard]] inline bool is_fenced(const process& p) noexcept {
    return p.step >= retirement_step::fenced_early;
}
/// True if none of the process's words can be committed any more.
[[nodiscard]] inline bool is_revoked(const process& p) noexcept {
    return is_doomed(p) && p.step != retirement_step::doomed && p.step != retirement_step::fenced_early;
}

template <typename F>
void in_order(process_table& t, F&& first) {
    if (t.settling) return first();
    struct reset_on_exit {
        bool* flag;
        ~reset_on_exit() { *flag = false; }
    };
    t.settling = true;
    const reset_on_exit guard{&t.settling};
    first();
    settle(t);
}

// The consequences of a death: for the seat (restart policy and state table), for the frames (blame.hpp), and
// for the run.

/// Applies the restart policy, once for each death.
void apply_restart_policy(process_table& t, seat& s, process& p);
/// Carries out an action of the state table. `p`: the process that the action concerns; may be null.
void apply_seat_action(process_table& t, seat& s, seat_action a, const process* p);
/// Adds a death to account.kills_at: once for each state other than IDLE that a job of the seat has, or for
/// IDLE if there is no such state. Words of all epochs are considered: ABORTED words of a predecessor show
/// that this process died while its predecessor was being retired.
void count_death(process_table& t, u32 seat_index);
/// True if the death counts as an attempt on the frames of the process.
[[nodiscard]] bool is_blamed(const process_table& t, const seat& s, const process& p) noexcept;
/// To be called if the exit status shows that the process caused its own death, and its note did not show
/// this (after a bare _exit, or a fault without a handler). Adds an attempt to each frame of the process that
/// no other process has taken yet.
void blame_late(process_table& t, seat& s, process& p) noexcept;
/// Adds a frame that continues as a tombstone to the account, which lists the newest ones.
void list_abandoned(process_table& t, tombstone_frame frame);
/// If a frame is given up because the death of `p` was its last attempt, counts and logs this frame. Such a
/// frame continues as a tombstone.
void note_abandoned(process_table& t, seat& s, const process& p);

}  // namespace carousel::supervisor
