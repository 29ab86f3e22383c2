#pragma once
// The end of one process, as a step and one table of (step, event) -> (next step, action). Nothing here
// touches a process or a shared word, and the tests cover each pair of the table. retire.cpp carries the
// actions out. R1 to R5 are the steps of ring/PROTOCOL.md.
//
//   working       no reason to end it
//   condemned     it is dead, hung or to be replaced; no successor's entry is named yet
//   doomed        its successor's entry is named and its own is DOOMED (R1); some of its words could still be
//                 committed
//   revoked       none of its words can be committed any more (R2)
//   fenced_early  the process and its device work have ended, but a word still has its epoch (a
//                 damaged block; no successor)
//   fenced        the process writes nothing any more, and none of its words can be committed
//   reclaimed     its buffers and words are free (R5); only the verdict on its death and the end of a tool
//                 that wraps it remain
//
// There are two kinds of events. Observations (condemn, breaks, kill_due, verdict_due, gone) are checked
// again at each poll, so an event that a step cannot use yet is not lost. Queries (succession, words, frames,
// buffers) are sent at each poll; succeeded, words_taken and buffers_free are the answers.

#include "core/types.hpp"

namespace carousel::supervisor {

enum class retirement_step : u8 { working, condemned, doomed, revoked, fenced_early, fenced, reclaimed };
inline constexpr u8 retirement_steps = 7;
[[nodiscard]] const char* name_of(retirement_step s) noexcept;

enum class retirement_event : u8 {
    condemn,       ///< the process is dead, hung or to be replaced
    succession,    ///< query: which entry succeeds it?
    succeeded,     ///< its successor's entry is named, or there is to be none
    words,         ///< query: can any of its job words still be committed?
    words_taken,   ///< none of them can
    breaks,        ///< its death ends its MPS domain
    kill_due,      ///< its time to end by itself is over
    frames,        ///< query: are its frames back in the queue?
    verdict_due,   ///< the known facts of its death suffice for the restart policy, which was not asked yet
    gone,          ///< the process has ended, and nothing of it runs on its device
    buffers,       ///< query: are its buffers free?
    buffers_free,  ///< they are free
};
inline constexpr u8 retirement_events = 12;
[[nodiscard]] const char* name_of(retirement_event e) noexcept;

enum class retirement_action : u8 {
    none,
    name_successor,  ///< R1: promote the standby, or appoint an entry
    doom,    ///< R1: record the known facts of its death; then its entry is DOOMED and the seat is its
             ///< successor's
    revoke,  ///< R2
    renew_domain,
    kill,     ///< R3
    requeue,  ///< R4; idempotent
    judge,    ///< ask the restart policy
    fence,    ///< its entry is FENCED; repeats R4
    reclaim,  ///< R5
    wait,     ///< not yet: the event is sent again at the next poll
    refuse,   ///< the event cannot occur in this step: an error of the caller
};
inline constexpr u8 retirement_actions = 12;
[[nodiscard]] const char* name_of(retirement_action a) noexcept;

struct retirement_move {
    retirement_step next;
    retirement_action action;
    bool operator==(const retirement_move&) const = default;
};
[[nodiscard]] retirement_move on(retirement_step step, retirement_event event) noexcept;

/// True if the process has had its time to end by itself. A process that leaves after the last frame of the
/// run has the stop timeout (tools write their results then); a process that leaves on its own has time to
/// record why. No process is killed while one of its words could still be committed, unless that lasts.
struct kill_view {
    bool paused = false;  ///< all processes end
    bool revoked = false, through = false, leaving = false;
    u64 seen_dead_for_ns = 0;
    u64 stop_timeout_ns = 0;
    u64 delay_ns = 0;  ///< for tests
};
[[nodiscard]] bool kill_is_due(const kill_view& v) noexcept;

/// True if the restart policy can be asked: at once if the cause is known, or if the process has delivered
/// frames (then other stages wait for its successor, and an unknown death counts as external). A process that
/// delivered nothing and left no note is judged by its exit status; so is a process without a successor,
/// since its cause is to be reported.
struct verdict_view {
    bool cause_known = false, ended = false, delivered = false, through = false, never_restarted = false,
         leaving = false, kill_sent = false;
};
[[nodiscard]] bool verdict_is_due(const verdict_view& v) noexcept;

}  // namespace carousel::supervisor
