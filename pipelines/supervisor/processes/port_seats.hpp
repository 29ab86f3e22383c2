#pragma once
// Seats of ports: nobody is started for them. A program of somebody else's comes to the socket and takes one
// (stages/sdk/port_frames.hpp), and the supervisor has no right to end it: it is neither signalled nor killed
// nor reaped. What it did to the words is retired as ever. Its fence comes in one of three ways:
//   - it says that it has left: its mappings are gone, and it lives on;
//   - its pidfd is readable: it has ended. Across sibling pid namespaces SO_PEERCRED has pid 0: the kernel's
//     pidfd of the peer (SO_PEERPIDFD), or on an older kernel the one that it has sent, can be watched there,
//     but not signalled;
//   - for a second supervisor, which has neither: it holds a lock on FOLDER/port-SEAT-EPOCH.lock from before
//     its claim until behind its last mapping, on a descriptor above the driver's. The kernel gives that up
//     behind memory and device.

#include "run/stage_message.hpp"
#include "shm/peer_process.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

[[nodiscard]] bool is_port(const process_table& t, const seat& s) noexcept;

/// A port's program on a connection. Empty: a process sits there now, as `in`; its answer is the caller's to
/// send. Else why it is refused; `again`: it may succeed later, when somebody's end has been seen.
[[nodiscard]] std::string seat_port(process_table& t, shm::peer_process peer, const run::hello_message& hello,
                                    std::vector<shm::unique_fd>& fds, bool& again, seat*& in);
/// {"left": true}: of the memory of the run it has nothing mapped any more.
void on_port_left(process_table& t, int connection);
/// Of a process without a pidfd (adopted): has its lock been given up?
[[nodiscard]] bool port_has_ended(const process_table& t, const process& p);
void remove_port_lock(const process_table& t, const process& p) noexcept;
/// What became of its place, for tables and messages.
[[nodiscard]] std::string describe_port_end(const process& p);
/// Throws config_error: a command that is for processes of the run.
void require_no_port(const process_table& t, const seat& s, const char* command);

}  // namespace carousel::supervisor
