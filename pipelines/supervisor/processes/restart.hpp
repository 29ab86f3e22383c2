#pragma once
// What follows from a death: for the seat, by its restart policy and the state table; for the frames, by
// blame.hpp; for the run.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Asks the policy, once for each death.
void apply_restart_policy(process_table& t, seat& s, process& p);
/// Carries out what the state table answers. `p`: the process it is about, if there is one.
void apply_seat_action(process_table& t, seat& s, seat_action a, const process* p);
/// At which state of its jobs a kill fell. Words of all epochs count: a predecessor's ABORTED ones show a
/// kill that falls into its retirement.
void count_death(process_table& t, u32 seat_index);
/// The exit status shows an own act that the note did not tell (a bare _exit, a fault without a handler): the
/// attempt is added to the frames that nobody has taken up yet.
void blame_late(process_table& t, seat& s, process& p) noexcept;
/// A frame that has had its attempts, by the death of `p`, goes on without a picture: into the account and
/// the log.
void note_abandoned(process_table& t, const seat& s, const process& p);

}  // namespace carousel::supervisor
