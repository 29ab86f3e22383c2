#pragma once
// Gives processes their seats: the start of a process, and its handshake with the supervisor.

#include "control/stage_message.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

// Starts processes, and watches them after that.

void start_all(process_table& t);
/// Starts a process for the seat if permitted: at once if an entry is free, otherwise the next tick tries
/// again.
void start_seat(process_table& t, seat& s);
/// To be called if a start failed, or its process ended at once, because of a shortage of processes, threads,
/// descriptors or memory. The next start is made later, and no attempt is counted.
void postpone_start(process_table& t, seat& s, const std::string& why);
/// Starts the stage's program for the entry that p.incarnation names. Throws carousel::error.
void spawn_process(const process_table& t, const seat& s, process& p);
/// Makes `peer` the working process of the seat; `peer` may have been started by a tool. Returns "", or the
/// reason why the process cannot be watched.
[[nodiscard]] std::string adopt_process(process_table& t, seat& s, process& p, shm::peer_process peer);
/// From now on processes may be started and accepted.
void memory_is_there(process_table& t);

// Handshake of a stage process with the supervisor: HELLO, or RETURN after a takeover, or DETACHED. Every
// function receives the connection as a descriptor, which the engine owns.

/// Handles a stage's HELLO. Returns "" after the process was accepted and the reply was sent; otherwise the
/// reason for the refusal.
[[nodiscard]] std::string accept_stage(process_table& t, int connection, shm::peer_process peer,
                                       const run::hello_message& hello);
/// Sends a process that starts over its new entry and the memory. A process to which that is not possible is
/// killed, as one that dies at its start.
void answer_detached(process_table& t, seat& s);
/// Handles the HELLO of a port's program; `fds`: the descriptors received with it. Sets `again` if the
/// refusal may be temporary.
[[nodiscard]] std::string accept_port(process_table& t, int connection, shm::peer_process peer,
                                      const run::hello_message& hello, std::vector<shm::unique_fd>& fds,
                                      bool& again);
/// Handles the RETURN of a stage that the dead supervisor had started. Returns "" after the stage was
/// accepted and the reply was sent; otherwise the reason why the stage was refused.
[[nodiscard]] std::string accept_stage_return(process_table& t, int connection, shm::peer_process peer,
                                              const run::return_message& message);

}  // namespace carousel::supervisor
