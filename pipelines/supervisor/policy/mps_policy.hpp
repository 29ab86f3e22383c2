#pragma once
// Policy for stages that share an MPS domain (isolation = "mps"). These functions only evaluate;
// mps_seats.hpp acts. Properties of stages in an MPS domain (measured; pipelines/docs/failures.md):
//   - A client whose words are aborted can be ended alone by terminate_client, even in a kernel that never
//     ends; the client is fenced after terminate_client has succeeded and its pidfd is readable. The words
//     must be aborted before that call, because after it the client's unfinished events are reported as
//     complete.
//   - A client that dies in any other way (fault, abort, exit, a kill from outside) may end every other
//     client, and may leave a server that refuses new clients. In this case the whole domain is renewed: all
//     its stages are revoked and killed, their frames wait, server and daemon are killed (their end is the
//     fence), and new ones are started. Ring memory is held by fds and survives; nothing is lost.
//   - All clients receive a GPU fault as the same error. The client whose kernel faulted cannot be
//     determined, so no client is blamed. If such faults recur without a delivered frame in between, the
//     clients that had work are tried one by one, each in a separate GPU context; if no trial
//     finds the cause, the domain is abandoned for the rest of the run and each stage has a separate context
//     (attempts, dead letters and failure as without MPS).
//   - A stage that is starting while the domain ends finds no device. Until all stages have restarted, such a
//     death is attributed to the same end of the domain. For each death the recovery log records the end of
//     the domain that the death belongs to, and whether the process caused that end.

#include <algorithm>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

struct client_view {
    /// the process is a client of a generation that has not ended, as far as is known
    bool client = false;
    bool terminated = false;  ///< terminate_client has ended all its device work
    bool by_supervisor = false, ended = false;
    bool through = false;      ///< every frame of the run has passed the stage of the process
    bool run_ends = false;     ///< the run ends: all processes end, and no buffer is used again
    bool rebuilding = false;   ///< all processes end; the buffers are used again, but no domain is renewed
    bool domain_ends = false;  ///< the server of its domain is being ended, which ends its device work
};
/// True if the client's death ends the domain, because the death may have affected the other clients in an
/// unknown way. If the supervisor ends the client, it does so by terminate_client, and the domain continues,
/// unless the client has died before that call. Evaluated before the first step of the retirement.
[[nodiscard]] bool breaks_domain(const client_view& v) noexcept;
/// To be called when the client's process has ended: returns true if no work of the client runs on the device
/// any more.
[[nodiscard]] bool device_is_quiet(const client_view& v) noexcept;

/// Reason not to blame a process for its death. device: the process received the device's fault, whichever
/// client caused the fault; domain: the process was ended because the domain ends.
enum class excuse : u8 { none, device, domain };
[[nodiscard]] excuse excuse_for(const death& how, bool domain_ends, bool breaks) noexcept;
/// True if the exit note of a process records that the process died by itself, from a cause that does not
/// affect all clients.
[[nodiscard]] bool died_by_itself(u64 exit_note) noexcept;

/// Counts consecutive faults of the domain without a delivered frame in between. add() returns true if the
/// domain must be abandoned.
struct fault_row {
    u32 in_row = 0;
    u64 moved_at_last = 0;
    u32 generation = 0;  ///< generation of the domain's last fault; the fault counts once, although all
                         ///< clients of the generation die from it
    [[nodiscard]] bool add(u64 frames_moved) noexcept;
};
inline constexpr u32 max_faults_in_row = 3;

// Finds the stage that makes an MPS domain fault repeatedly. All clients get the same error, so a fault in
// the domain does not identify a stage. In a trial, the stages that had work on the device (the suspects)
// work one at a time in a separate GPU context, concurrently with the domain.
//   the suspect meets the device's fault there      it died alone: it is blamed like any stage, and keeps
//                                                   a separate context for the rest of the run
//   the domain faults meanwhile                     the suspect was not in it: acquitted; the next is tried
//   the suspect commits what it had in flight, and  acquitted; the next is tried
//     one more frame
// A trial begins with the second unprovoked fault in a row without a frame delivered in between; a single
// fault is blamed on no stage. Each fault of the domain acquits one suspect, so a trial of n suspects ends
// after at most n faults. If no suspect died alone, the count of consecutive faults continues, and the domain
// is abandoned when the limit is reached.
// Plain functions on plain data; mps_seats.cpp carries the results out. If the supervisor dies, the list of
// the remaining suspects is lost; the stage on trial and the blamed stages are part of the run's state.

struct mps_trial {
    u32 on_trial = shm::none;  ///< index of a stage
    std::vector<u32> waiting;  ///< remaining suspects, in order
    std::vector<u32> blamed;   ///< stages that died alone

    [[nodiscard]] bool in_progress() const noexcept { return on_trial != shm::none; }
    [[nodiscard]] bool is_blamed(u32 stage) const noexcept {
        return std::find(blamed.begin(), blamed.end(), stage) != blamed.end();
    }
    /// True if the stage needs a separate GPU context.
    [[nodiscard]] bool is_alone(u32 stage) const noexcept { return stage == on_trial || is_blamed(stage); }
    /// `suspects` are in the order of their trials; if there are none, no trial begins.
    void begin(std::vector<u32> suspects) noexcept {
        waiting = std::move(suspects);
        next();
    }
    /// The stage on trial returns to the domain; the next suspect, if any, is on trial.
    void acquit() noexcept { next(); }
    /// The stage on trial died alone, so no other stage is suspected any more.
    void blame() noexcept {
        blamed.push_back(on_trial);
        waiting.clear();
        on_trial = shm::none;
    }

private:
    void next() noexcept {
        on_trial = waiting.empty() ? shm::none : waiting.front();
        if (!waiting.empty()) waiting.erase(waiting.begin());
    }
};

/// Number of faults in a row that starts a trial.
inline constexpr u32 faults_before_trial = 2;

}  // namespace carousel::supervisor
