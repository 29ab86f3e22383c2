#pragma once
// The consequences of a death: for the seat (restart policy and state table), for the frames (blame.hpp), and
// for the run.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Applies the restart policy, once for each death.
void apply_restart_policy(process_table& t, seat& s, process& p);
/// Carries out an action of the state table. `p`: the process that the action concerns; may be null.
void apply_seat_action(process_table& t, seat& s, seat_action a, const process* p);
/// Counts a death by the states of its seat's jobs. Words of all epochs count: a predecessor's ABORTED ones
/// show a kill during its retirement.
void count_death(process_table& t, u32 seat_index);
/// To be called if the exit status shows that the process caused its own death although its note did not (a
/// bare _exit, a fault without a handler): adds an attempt to each of its frames that no process has taken
/// yet.
void blame_late(process_table& t, seat& s, process& p) noexcept;
/// A frame whose attempts are used up by the death of `p` continues without a picture: adds it to the account
/// and logs it.
void note_abandoned(process_table& t, const seat& s, const process& p);

}  // namespace carousel::supervisor
