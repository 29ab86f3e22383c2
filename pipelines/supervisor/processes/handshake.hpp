#pragma once
// Handshake of a stage process with the supervisor: HELLO, or RETURN after a takeover. Every function
// receives the connection as a descriptor, which the engine owns.

#include "control/stage_message.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Handles a stage's HELLO. Returns "" if the process is accepted, with the reply sent; otherwise the reason
/// for the refusal.
[[nodiscard]] std::string accept_stage(process_table& t, int connection, shm::peer_process peer,
                                       const run::hello_message& hello);
/// Handles the HELLO of a port's program; `fds`: the descriptors received with it. Sets `again` if the
/// refusal may be temporary.
[[nodiscard]] std::string accept_port(process_table& t, int connection, shm::peer_process peer,
                                      const run::hello_message& hello, std::vector<shm::unique_fd>& fds,
                                      bool& again);
/// Handles the RETURN of a stage that the dead supervisor had started. Returns "" if the stage is accepted,
/// with the reply sent; otherwise the reason why it has no place.
[[nodiscard]] std::string accept_stage_return(process_table& t, int connection, shm::peer_process peer,
                                              const run::return_message& message);

}  // namespace carousel::supervisor
