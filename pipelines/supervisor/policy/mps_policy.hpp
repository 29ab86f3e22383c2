#pragma once
// The rules for stages that share an MPS domain (isolation = "mps"): they look, and say what is so.
// mps_seats.hpp carries them out. What is special about such stages (measured, pipelines/README.md "Limits"):
//   - a client whose words are aborted can be ended alone by terminate_client, also in a kernel that never
//   ends; that, and
//     its pidfd, is its fence. Words first: its unfinished events read complete from then on;
//   - one that dies otherwise (fault, abort, exit, a kill from outside) may take every client along, and may
//   leave a server that
//     refuses newcomers. The whole domain is renewed then: all its stages are revoked and killed, their
//     frames wait, server and daemon are killed (their end is the fence), new ones are started. Ring memory
//     is held by fds and survives; nothing is lost.
//   - a GPU fault reaches all clients with one and the same error: whose kernel it was can't be told, so
//   nobody is blamed. If
//     they come again without a frame moved on, those that had work are tried one by one, each in a GPU
//     context of its own (mps_trial.hpp); if that shows nobody, the domain is given up for the rest of the
//     run and each stage has a context of its own (attempts, dead letters, failure as ever).
//   - a stage that was just starting finds no device then. Until all are back that is the same end of the
//   domain; the recovery
//     log tells of each death into which end it fell, and whether it was the process's own.

#include "core/types.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

struct client_view {
    bool client = false;      ///< of a generation that serves, or whose end is not known yet
    bool terminated = false;  ///< terminate_client has ended all its work
    bool by_supervisor = false, ended = false;
    bool through = false;   ///< every frame of the run is through its stage
    bool run_ends = false;  ///< or is being rebuilt: everybody goes
};
/// Does its death end the domain? One that nobody can bound does; one that we mean to end is ended by
/// terminate_client, unless it was quicker. Asked before the retirement's first step.
[[nodiscard]] bool breaks_domain(const client_view& v) noexcept;
/// Its process has ended: does nothing of it run on the device any more?
[[nodiscard]] bool device_is_quiet(const client_view& v) noexcept;

/// Is its end nothing that it is to be blamed for? device: it met the device's fault, whoever's that was;
/// domain: it ends because the domain does.
enum class excuse : u8 { none, device, domain };
[[nodiscard]] excuse excuse_for(const death& how, bool domain_ends, bool breaks) noexcept;
/// Does its note tell of a death of its own, by nothing that reaches all clients?
[[nodiscard]] bool died_by_itself(u64 exit_note) noexcept;

/// Faults of the domain in a row, with no frame delivered in between. True: it is to be given up.
struct fault_row {
    u32 in_row = 0;
    u64 moved_at_last = 0;
    u32 generation = 0;  ///< of the domain that had the last one: all its clients die of it, and it is one
    [[nodiscard]] bool add(u64 frames_moved) noexcept;
};
inline constexpr u32 max_faults_in_row = 3;

}  // namespace carousel::supervisor
