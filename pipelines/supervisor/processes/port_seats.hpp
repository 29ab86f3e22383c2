#pragma once
// Seats of ports: the supervisor starts no process for them. An external program connects to the socket and
// takes one (stages/sdk/port_frames.hpp). The supervisor has no right to end it: the program is neither
// signalled nor killed nor reaped. Its words are retired as usual. Its fence comes in one of three ways:
//   - it reports that it has left: its mappings are gone, and it continues to run;
//   - its pidfd is readable: it has ended. Across sibling pid namespaces SO_PEERCRED has pid 0: the kernel's
//     pidfd of the peer (SO_PEERPIDFD), or on an older kernel the one that the program has sent, can be
//     watched there but not signalled;
//   - for a second supervisor, which has neither: the program holds a lock on FOLDER/port-SEAT-EPOCH.lock
//     from before its claim until after its last mapping, on a descriptor above the driver's. The kernel
//     releases that lock after memory and device.

#include "control/stage_message.hpp"
#include "shm/peer_process.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

[[nodiscard]] bool is_port(const process_table& t, const seat& s) noexcept;

/// Seats a port's program. Returns "" if a process now occupies the seat, as `in`; the caller sends the
/// reply. Otherwise returns the reason for the refusal; `again`: it may succeed later, once another process's
/// end is seen.
[[nodiscard]] std::string seat_port(process_table& t, shm::peer_process peer, const run::hello_message& hello,
                                    std::vector<shm::unique_fd>& fds, bool& again, seat*& in);
/// For a process without a pidfd (adopted): true if its lock has been released.
[[nodiscard]] bool port_has_ended(const process_table& t, const process& p);
void remove_port_lock(const process_table& t, const process& p) noexcept;
/// How its use of the port ended, for tables and messages.
[[nodiscard]] std::string describe_port_end(const process& p);
/// Throws config_error if the seat is a port's: `command` applies only to processes of the run.
void require_no_port(const process_table& t, const seat& s, const char* command);

}  // namespace carousel::supervisor
