#pragma once
// Readers that are absent by configuration: a port with vacant = "skip" and no program in it, and an optional
// sink whose instances have all failed. Frames bypass them: their groups are closed and no ring waits for
// them. Only this file closes and opens groups. The claims determine which frames count as lost or awaited
// (stores/ledger_store.hpp), which also change here: a claim is suspended before its group is closed, and
// resumed after its group is open again. A supervisor that dies between these steps leaves the claim
// suspended, and the next supervisor completes them, because settle_absent_readers() compares the groups with
// the seats at each tick. A damaged word changes nothing: the next tick tries again.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Lets frames bypass the stage until it has a process again.
void skip_frames(process_table& t, u32 stage);
/// Makes the rings wait for the stage again. An optional sink then has a claim on every frame that no stage
/// has begun so far, and receives the frames in the rings that have not bypassed it yet. To be called before
/// the stage's process may start to read.
void await_again(process_table& t, u32 stage);
/// Called in each tick, so that the words reflect the absence also in a rebuilt block and after a takeover.
void settle_absent_readers(process_table& t);

}  // namespace carousel::supervisor
