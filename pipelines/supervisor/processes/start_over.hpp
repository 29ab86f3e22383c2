#pragma once
// A rebuild keeps the processes of standbys: a standby has an open device and has prepared itself once, so it
// becomes the working process of its seat in less time than a new process. It starts over:
//   supervisor -> start_over   when the rebuild begins
//   standby -> detached        it has destroyed its stage object and unmapped the block and all memory
//   supervisor -> attach       after the new block is valid, with the entry of the seat's next process
// Between detached and attach the process is outside of the run: it maps nothing of it, and holds no lock of
// it. So the rebuild treats it as a process that has ended, and no process of the old block can write into
// the new one or into the rings. A standby that does not detach in time (it may be stopped) is killed, and
// its seat gets a new process. If the supervisor ends, the connection closes, and a process that has begun to
// start over exits.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Requests that the seat's standby starts over. Returns false if it must be ended instead: it is not ready,
/// belongs to an MPS domain, runs under a tool, exchanges frames with another host, or is a stage in Python
/// (its first stage object would stay in the interpreter, with its memory).
[[nodiscard]] bool request_start_over(process_table& t, seat& s);
/// Handles a detached_message.
void standby_detached(process_table& t, int connection);
/// Ends the standbys that have not detached although all other processes have ended.
void watch_detaching(process_table& t, u64 now);
/// Returns the seat's detached standby, which is to become its working process; null: there is none.
[[nodiscard]] std::unique_ptr<process> take_detached(process_table& t, seat& s);
/// To be called after the seats have got their processes: ends the detached standbys that are left, and
/// delays the next standbys, because a process that opens a device delays others that begin to use theirs.
void end_start_over(process_table& t);

}  // namespace carousel::supervisor
