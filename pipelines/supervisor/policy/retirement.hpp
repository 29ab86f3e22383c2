#pragma once
// The end of one process, as one step and one table of (step, event) -> (next step, action). Nothing here
// touches a process or a shared word: the table can be read, and is tested pair by pair. retire.cpp carries
// the actions out. R1 to R5 are the steps of ring/PROTOCOL.md.
//
//   working       nothing is held against it
//   condemned     it is dead, hung or unwanted; no successor's entry is named yet
//   doomed        its successor's entry is named and its own is DOOMED (R1); some of its words could still be
//                 committed
//   revoked       none of its words can be committed any more (R2)
//   fenced_early  it and its work on the device are over, but a word still bears its epoch (a damaged block;
//                 no successor)
//   fenced        nothing of it writes any more, and none of its words can be committed
//   reclaimed     its buffers and words are free (R5); what is left is the verdict on its death and a tool in
//                 front of it
//
// Events are of two kinds. What is seen (condemn, breaks, kill_due, verdict_due, gone) is looked at again at
// each look, so one that a step can't use yet is not lost. What is asked (succession, words, frames, buffers)
// comes with each look; succeeded, words_taken and buffers_free are the answers.

#include "core/types.hpp"

namespace carousel::supervisor {

enum class retirement_step : u8 { working, condemned, doomed, revoked, fenced_early, fenced, reclaimed };
inline constexpr u8 retirement_steps = 7;
[[nodiscard]] const char* name_of(retirement_step s) noexcept;

enum class retirement_event : u8 {
    condemn,       ///< it is dead, hung or unwanted
    succession,    ///< who comes behind it?
    succeeded,     ///< its successor's entry is named, or nobody is to follow
    words,         ///< can a word of its be committed?
    words_taken,   ///< none can
    breaks,        ///< its death ends its MPS domain
    kill_due,      ///< it has had the time that it is given to end by itself
    frames,        ///< are its frames back in the queue?
    verdict_due,   ///< what is known of its death is enough for the restart policy, which has not been asked
    gone,          ///< the process has ended, and nothing of it runs on its device
    buffers,       ///< are its buffers free?
    buffers_free,  ///< they are
};
inline constexpr u8 retirement_events = 12;
[[nodiscard]] const char* name_of(retirement_event e) noexcept;

enum class retirement_action : u8 {
    none,
    name_successor,  ///< R1: promote the standby, or appoint an entry
    doom,    ///< R1: write down what its death looks like, then its entry is DOOMED and the seat is its
             ///< successor's
    revoke,  ///< R2
    renew_domain,
    kill,     ///< R3
    requeue,  ///< R4; may be repeated
    judge,    ///< ask the restart policy
    fence,    ///< its entry is FENCED; R4 once more
    reclaim,  ///< R5
    wait,     ///< not yet: the event is told again at the next look
    refuse,   ///< the event can't come in this step: a mistake of the caller's
};
inline constexpr u8 retirement_actions = 12;
[[nodiscard]] const char* name_of(retirement_action a) noexcept;

struct retirement_move {
    retirement_step next;
    retirement_action action;
    bool operator==(const retirement_move&) const = default;
};
[[nodiscard]] retirement_move on(retirement_step step, retirement_event event) noexcept;

/// Has it been given the time that it may take to end by itself? One that leaves behind the last frame of the
/// run may do so in peace (tools write their results then), and one that leaves by itself may say why. Nobody
/// is killed while a word of its could still be committed, unless that lasts.
struct kill_view {
    bool paused = false;  ///< everybody ends
    bool revoked = false, through = false, leaving = false;
    u64 seen_dead_for_ns = 0;
    u64 stop_timeout_ns = 0;
    u64 delay_ns = 0;  ///< a test's
};
[[nodiscard]] bool kill_is_due(const kill_view& v) noexcept;

/// The policy is asked at once when the cause is known or when the process has delivered frames: then others
/// wait for its successor, and an unknown death is taken for one from outside. One that delivered nothing and
/// said nothing is judged by its exit status; so is one that nobody is to follow, since its cause is wanted.
struct verdict_view {
    bool cause_known = false, ended = false, delivered = false, through = false, never_restarted = false,
         leaving = false, kill_sent = false;
};
[[nodiscard]] bool verdict_is_due(const verdict_view& v) noexcept;

}  // namespace carousel::supervisor
