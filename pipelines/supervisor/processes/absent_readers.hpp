#pragma once
// Readers that are absent by configuration: a port with vacant = "skip" and no program in it, and an optional
// sink whose instances have all failed. Frames pass them by: their groups are closed and no ring waits for
// them. Only this file closes and opens groups. Which frames are lost or awaited follows from the claims
// (stores/ledger_store.hpp), which also change here: a claim is suspended before its group is closed, and
// resumed after its group is open again. A supervisor that dies in between leaves the claim suspended, and
// the next one continues, since settle_absent_readers() compares the groups with the seats at each tick. A
// damaged word changes nothing: the next tick tries again.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Lets frames pass the stage by until it has a process again.
void skip_frames(process_table& t, u32 stage);
/// Makes the rings wait for the stage again. An optional sink then has a claim on every frame that no stage
/// has begun so far; of those in the rings it gets the ones that have not passed it yet. Call it before its
/// process may start to read.
void await_again(process_table& t, u32 stage);
/// Called in each tick, so that the words also state the absence in a rebuilt block and after a takeover.
void settle_absent_readers(process_table& t);

}  // namespace carousel::supervisor
