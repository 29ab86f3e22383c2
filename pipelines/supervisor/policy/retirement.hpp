#pragma once
// The end of one process, as a step and a sequence of actions. Each poll goes through the sequence once and
// performs the actions that the step permits and the facts require; an action that succeeds may move the
// process to its next step. Nothing here touches a process or a shared word. retire.cpp carries the actions
// out. R1 to R5 are the steps of ring/PROTOCOL.md.
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
// If the condition of an action is met only in a later step, the action is done in that step, because each
// poll checks the condition again.

#include "core/types.hpp"

namespace carousel::supervisor {

enum class retirement_step : u8 { working, condemned, doomed, revoked, fenced_early, fenced, reclaimed };
inline constexpr u8 retirement_steps = 7;
[[nodiscard]] const char* name_of(retirement_step s) noexcept;

/// The actions, in the order in which a poll goes through them.
enum class retirement_action : u8 {
    succeed,  ///< R1: promote the standby, or appoint an entry; then record the known facts of the death,
              ///< mark the entry DOOMED, and give the seat to the successor
    revoke,   ///< R2: succeeds if none of the process's words can be committed any more
    renew_domain,  ///< the process's death ends its MPS domain
    kill,          ///< R3
    requeue,       ///< R4; idempotent
    judge,         ///< ask the restart policy
    fence,         ///< the process and its device work have ended: its entry is FENCED; repeats R4
    reclaim,       ///< R5: succeeds if the process's buffers are free
};
inline constexpr u8 retirement_actions = 8;
[[nodiscard]] const char* name_of(retirement_action a) noexcept;

[[nodiscard]] bool is_done_in(retirement_step step, retirement_action action) noexcept;
/// Returns the step that the process is in after the action has succeeded.
[[nodiscard]] retirement_step step_after(retirement_step step, retirement_action action) noexcept;

/// True if the process has had enough time to end by itself. A process that leaves after the last frame of
/// the run may take as long as the stop timeout, because tools write their results in that time. A process
/// that exits on its own has time to record the reason. No process is killed while one of its words could
/// still be committed, unless that state lasts too long.
struct kill_view {
    bool paused = false;  ///< all processes end
    bool revoked = false, through = false, leaving = false;
    u64 seen_dead_for_ns = 0;
    u64 stop_timeout_ns = 0;
    u64 delay_ns = 0;  ///< for tests
};
[[nodiscard]] bool kill_is_due(const kill_view& v) noexcept;

/// True if the restart policy can be applied now. It is applied at once if the cause of the death is known.
/// It is also applied at once if the process has delivered frames, because other stages wait for its
/// successor; in this case a death of unknown cause counts as external. In two cases the policy waits for the
/// exit status. In the first case the process delivered no frame and left no note. In the second case the
/// process gets no successor, so the cause of its death must be reported.
struct verdict_view {
    bool cause_known = false, ended = false, delivered = false, through = false, never_restarted = false,
         leaving = false, kill_sent = false;
};
[[nodiscard]] bool verdict_is_due(const verdict_view& v) noexcept;

}  // namespace carousel::supervisor
