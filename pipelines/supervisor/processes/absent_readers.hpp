#pragma once
// Readers that are absent by their own rule: a port with vacant = "skip" and no program in it, and an
// optional sink whose instances have all failed. Frames pass them by: their groups are closed, no ring waits
// for them. This is the one place that closes and opens groups. What is lost or awaited follows from the
// claims (stores/ledger_store.hpp), which change here, too: a claim is suspended before its group is
// closed, and resumed after its group is open again. A supervisor that dies in between leaves both suspended
// and the next one continues, since settle_absent_readers() compares the groups with the seats at each tick.
// A damaged word changes nothing: the next tick tries again.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Frames pass the stage by until a process of it is back.
void skip_frames(process_table& t, u32 stage);
/// The rings wait for the stage again. An optional sink has a claim again on every frame that no stage has
/// begun so far; of those in the rings it gets what has not passed it yet. Call before its process may start
/// to read.
void await_again(process_table& t, u32 stage);
/// At each tick, so that it holds also in a block that is made again, and for the second supervisor.
void settle_absent_readers(process_table& t);

}  // namespace carousel::supervisor
