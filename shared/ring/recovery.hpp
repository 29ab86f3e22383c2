#pragma once
// The supervisor's actions for a dead, hung or revoked incarnation. Every function may be repeated and may be
// cut off between any two of its CASes: the words alone define the remaining work, and a second supervisor
// continues from them.
//
// Order (if a step is omitted, frames are torn, repeated or lost):
//   1. appoint() a successor (the epoch rises), doom() the entry;
//   2. revoke(): IDLE -> the successor's epoch; OPEN, SUBMITTED -> ABORTED; for a COMMITTED word, does the
//      job's remaining steps now, then -> IDLE. When revoke() returns true, only ABORTED words contain the
//      epoch: no job of that incarnation can commit any more.
//   3. the kill, through the pidfd;
//   4. requeue(): leases tagged by ABORTED jobs -> WAIT, FILL slots tagged by them -> QUARANTINED. This
//      step is repeated until the fence, and once after the fence, because a process that is stopped between
//      two of its own CASes may still tag words;
//   5. after the fence (the process and its device work have ended): reclaim(): QUARANTINED -> FREE,
//      ABORTED -> IDLE.

#include <functional>
#include <optional>

#include "ring/participants.hpp"

namespace carousel::ring {

/// How a death counts against the frames that were in flight.
enum class blame : u8 {
    none,  ///< killed from outside: the frames are not blamed
    own,   ///< fault, abort, exception, exit, deadline
};

struct job_census {
    u32 by_state[5] = {};  ///< number of job words with this epoch, by job_state
    u32 in_flight = 0;     ///< OPEN, SUBMITTED, ABORTED or damaged: frames that a death requeues
};
[[nodiscard]] job_census census(const shm::control_block& c, u32 seat, u32 epoch) noexcept;

/// R2. Returns true if the incarnation is revoked; `successor` in the code is the seat's present epoch.
/// `committed` is called with the frame of each COMMITTED word before the word is advanced, because a dead
/// sink may not have recorded the frame in its ledger. It may be called more than once for a frame, and must
/// not throw.
bool revoke(shm::control_block& c, u32 seat, u32 dead_epoch,
            const std::function<void(u64)>& committed = {}) noexcept;
/// R4. With blame::own, counts an attempt if at most one frame was in flight (`in_flight` of the census taken
/// before); if there were more, marks these frames to be leased alone. Returns true if no tag was found and
/// no word is damaged.
bool requeue(shm::control_block& c, u32 seat, u32 dead_epoch, blame why, u32 in_flight) noexcept;
/// R5, after the fence. Returns true if no job word contains the epoch any more.
bool reclaim(shm::control_block& c, u32 seat, u32 dead_epoch) noexcept;

/// Also called after the fence: an asset that the dead incarnation was loading becomes EMPTY again, because
/// that incarnation can no longer write.
void reset_assets(shm::control_block& c, u32 seat, u32 dead_epoch) noexcept;

/// Rings the doorbell of every stage that shares a link with the seat's stage.
void ring_neighbours(shm::control_block& c, u32 seat) noexcept;
/// From now on the ring ignores the WAIT words of the group, because an optional stage has failed for good or
/// no program is at a port that skips. Returns true if the group was open.
bool close_group(shm::control_block& c, u32 link, u32 group) noexcept;
/// Gives the frames that are still WAIT, and later frames, to the group's readers again. Returns true if the
/// group is now BLOCKING; false if its word is damaged or was changed in the meantime.
bool open_group(shm::control_block& c, u32 link, u32 group) noexcept;
/// Frees the places that the member `entry`, which is fenced or has ended, has in latest groups.
void dismiss_latest(shm::control_block& c, u32 entry) noexcept;

/// Phase 1 of the end of a run: END, unknown or given, -> STOPPING. No source leases from then on. Only the
/// first call has an effect.
void begin_stop(shm::control_block& c) noexcept;
/// Returns the first number that no source has begun: no source has leased or completed this number or a
/// higher number. Empty if a word that is needed for this is damaged.
[[nodiscard]] std::optional<u64> first_unbegun(const shm::control_block& c) noexcept;
/// Returns the first number that this source has not begun; sources may be up to a window apart.
[[nodiscard]] std::optional<u64> first_unbegun_by(const shm::control_block& c, u32 source) noexcept;
/// Returns the lowest number above those of all frames that are READY in the ring or have left it. Empty if a
/// word or a header that is needed for this is damaged.
[[nodiscard]] std::optional<u64> first_not_ready(shm::control_block& c, u32 link) noexcept;
/// Phase 2: after every live source has acknowledged (revoked sources need not), END = 1 + the highest number
/// that is leased or done. Returns true if END is known.
bool try_finish_stop(shm::control_block& c) noexcept;
/// Returns true if the tails of all links have reached END.
[[nodiscard]] bool all_delivered(const shm::control_block& c) noexcept;

}  // namespace carousel::ring
