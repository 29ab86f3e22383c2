#pragma once
// Policy for stages that share an MPS domain (isolation = "mps"). These functions only evaluate;
// mps_seats.hpp acts. Properties of such stages (measured; pipelines/README.md "Limits"):
//   - A client whose words are aborted can be ended alone by terminate_client, even in a kernel that never
//     ends; that and its pidfd are its fence. Words first: its unfinished events read complete from then on.
//   - A client that dies otherwise (fault, abort, exit, a kill from outside) may take every client along, and
//     may leave a server that refuses new clients. The whole domain is then renewed: all its stages are
//     revoked and killed, their frames wait, server and daemon are killed (their end is the fence), and new
//     ones are started. Ring memory is held by fds and survives; nothing is lost.
//   - A GPU fault reaches all clients with the same error. The client whose kernel faulted cannot be
//     determined, so no client is blamed. If such faults recur without a delivered frame in between, the
//     clients that had work are tried one by one, each in a separate GPU context (mps_trial.hpp); if no trial
//     finds the cause, the domain is abandoned for the rest of the run and each stage has a separate context
//     (attempts, dead letters and failure as without MPS).
//   - A stage that is starting at that moment finds no device. Until all stages are back, that counts as the
//     same end of the domain; the recovery log records for each death the end that it belongs to, and whether
//     the process caused it.

#include "core/types.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

struct client_view {
    bool client = false;      ///< client of a generation that serves, or whose end is not known yet
    bool terminated = false;  ///< terminate_client has ended all its device work
    bool by_supervisor = false, ended = false;
    bool through = false;   ///< every frame of the run has passed its stage
    bool run_ends = false;  ///< or is being rebuilt: all processes end
};
/// True if the client's death ends the domain: a death whose effect on the others has no bound does. A client
/// that the supervisor means to end is ended by terminate_client, unless it died first. Evaluated before the
/// first step of the retirement.
[[nodiscard]] bool breaks_domain(const client_view& v) noexcept;
/// True if nothing of a client whose process has ended runs on the device any more.
[[nodiscard]] bool device_is_quiet(const client_view& v) noexcept;

/// Reason not to blame a process for its end. device: it received the device's fault, whichever client caused
/// it; domain: it ends because the domain does.
enum class excuse : u8 { none, device, domain };
[[nodiscard]] excuse excuse_for(const death& how, bool domain_ends, bool breaks) noexcept;
/// True if its exit note records a death of its own, by a cause that does not reach all clients.
[[nodiscard]] bool died_by_itself(u64 exit_note) noexcept;

/// Faults of the domain in a row without a delivered frame in between. add() returns true if the domain is to
/// be abandoned.
struct fault_row {
    u32 in_row = 0;
    u64 moved_at_last = 0;
    u32 generation = 0;  ///< of the domain's last fault, which all its clients die of: it counts once
    [[nodiscard]] bool add(u64 frames_moved) noexcept;
};
inline constexpr u32 max_faults_in_row = 3;

}  // namespace carousel::supervisor
