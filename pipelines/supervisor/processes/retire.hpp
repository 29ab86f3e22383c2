#pragma once
// What is done about a process that is dead, hung or unwanted: retirement.hpp says what and in which order,
// this carries it out.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// The seat's process is history from here on, if there is one. Done at once, or behind what is being done.
void retire(process_table& t, seat& s);
/// One look at a process that is being retired: what is true of it now is told to the table, and what that
/// asks for is done.
void poll_retirement(process_table& t, seat& s, process& p, u64 now);
/// Does `first`, then the work that came up, in the order in which it was found; inside another one `first`
/// alone.
template <typename F>
void in_order(process_table& t, F&& first);
/// The work that has come up.
void settle(process_table& t);
void on_process_end(process_table& t, seat& s, process& p);
/// Before anything is done to its words: what it had in hand, and what it could still say.
void record_death(process_table& t, seat& s, process& p);
/// Buffers of the seat that wait for the end of a process.
[[nodiscard]] u32 count_quarantined(const process_table& t, const seat& s) noexcept;
/// Complete: it can be forgotten.
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
/// None of its words can be committed any more.
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

}  // namespace carousel::supervisor
