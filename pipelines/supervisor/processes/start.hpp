#pragma once
// Starts processes, and watches them after that.

#include "shm/process_id.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

void start_all(process_table& t);
/// Starts a process for the seat if permitted: at once if an entry is free, otherwise the next tick tries
/// again.
void start_seat(process_table& t, seat& s);
/// A start failed, or its process ended at once, because of a shortage of processes, threads, descriptors or
/// memory: the next start is made later, and no attempt is counted.
void postpone_start(process_table& t, seat& s, const std::string& why);
/// Starts the stage's program for the entry that p.incarnation names. Throws carousel::error.
void spawn_process(const process_table& t, const seat& s, process& p);
/// Makes process `peer` the one that works on the seat; `peer` may have been started by a tool. Returns "",
/// or the reason why the process cannot be watched.
[[nodiscard]] std::string adopt_process(process_table& t, seat& s, process& p, shm::peer_process peer);
/// From now on processes may be started and accepted.
void memory_is_there(process_table& t);

}  // namespace carousel::supervisor
