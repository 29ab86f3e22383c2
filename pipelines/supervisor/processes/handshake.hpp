#pragma once
// Stages come to the supervisor's socket: with a hello, or back when their first supervisor has died. Every
// function is told the connection, which the engine owns.

#include "run/stage_message.hpp"
#include "shm/peer_process.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// A stage's hello on a connection. Empty: it is in, its answer sent. Else why it is refused.
[[nodiscard]] std::string accept_stage(process_table& t, int connection, shm::peer_process peer,
                                       const run::hello_message& hello);
/// A port's program's hello, with what came along. `again`: a refusal that may not last.
[[nodiscard]] std::string accept_port(process_table& t, int connection, shm::peer_process peer,
                                      const run::hello_message& hello, std::vector<shm::unique_fd>& fds,
                                      bool& again);
/// A stage of the dead supervisor presents itself again. Empty: it is welcome, and told so. Else why it has
/// no place.
[[nodiscard]] std::string accept_stage_return(process_table& t, int connection, shm::peer_process peer,
                                              const run::return_message& message);
void stage_is_ready(process_table& t, int connection);
/// A stage that was let return writes into its new pipe.
void on_stage_returned(process_table& t, int connection);
void connection_closed(process_table& t, int connection);

}  // namespace carousel::supervisor
