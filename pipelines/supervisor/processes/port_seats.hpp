#pragma once
// Seats of ports, for which the supervisor starts no process. An external program connects to the socket and
// takes such a seat (stages/sdk/port_frames.hpp). The supervisor has no right to end the program, which is
// neither signalled nor killed nor reaped. The program's words are retired as usual. The program is fenced in
// one of three ways:
//   - the program reports that it has left: its mappings are gone, and the program continues to run;
//   - the program's pidfd is readable: the program has ended. If the program is in a sibling pid namespace,
//     SO_PEERCRED reports pid 0. The kernel's pidfd of the peer (SO_PEERPIDFD), or on an older kernel the
//     pidfd that the program has sent, can then be polled but not signalled;
//   - the program's lock on FOLDER/port-SEAT-EPOCH.lock is free: this is for a second supervisor, which has
//     no pidfd of the program. The program takes the lock before its claim and holds it until after its last
//     mapping. The lock's descriptor has a higher number than the driver's descriptors, so the kernel
//     releases the lock only after it has released the process's memory and device.

#include "control/stage_message.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

[[nodiscard]] bool is_port(const process_table& t, const seat& s) noexcept;

/// Seats a port's program. Returns "" if a process now occupies the seat with the data in `in`; the caller
/// sends the reply. Otherwise returns the reason for the refusal; `again`: the attempt may succeed later,
/// after the end of another process has been detected.
[[nodiscard]] std::string seat_port(process_table& t, shm::peer_process peer, const run::hello_message& hello,
                                    std::vector<shm::unique_fd>& fds, bool& again, seat*& in);
/// For an adopted process, which has no pidfd: true if its lock has been released.
[[nodiscard]] bool port_has_ended(const process_table& t, const process& p);
void remove_port_lock(const process_table& t, const process& p) noexcept;
/// Describes how the program's use of the port ended, for tables and messages.
[[nodiscard]] std::string describe_port_end(const process& p);
/// Throws config_error if the seat is a port's, because `command` applies only to processes of the run.
void require_no_port(const process_table& t, const seat& s, const char* command);

// Two kinds of readers may be absent: a port with vacant = "skip" while no program is attached to it, and an
// optional sink after all its instances have failed. Frames bypass an absent reader: its groups are closed,
// and no ring waits for it. Only this file closes and opens groups. The claims on disk
// (stores/ledger_store.hpp) determine which frames count as lost or awaited. This file also changes the
// claims: a claim is suspended before its group is closed, and resumed after its group is open again. A
// supervisor that dies between these steps leaves the claim suspended. The next supervisor completes the
// steps, because settle_absent_readers() compares the groups with the seats at each tick. If a word is
// damaged, nothing is changed, and the next tick tries again.

/// True if the stage is an absent reader. For any other stage that is vacant, down or in backoff, the rings
/// wait.
[[nodiscard]] bool is_absent(const run_setup& setup, const seat_list& seats, u32 stage);
/// Lets frames bypass the stage until it has a process again.
void skip_frames(process_table& t, u32 stage);
/// Makes the rings wait for the stage again. After this call, an optional sink has a claim on every frame
/// that no stage has begun yet. It also receives those frames that are still in the rings and have not
/// bypassed it. To be called before the stage's process may start to read.
void await_again(process_table& t, u32 stage);
/// Closes the groups of absent readers, and opens them when the readers are back. Called in each tick, so
/// that the groups are also correct in a rebuilt block and after a takeover.
void settle_absent_readers(process_table& t);

}  // namespace carousel::supervisor
