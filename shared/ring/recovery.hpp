#pragma once
// What the supervisor does about a dead, hung or revoked incarnation. Every function may be repeated and may
// be cut off between any two of its CASes: the words alone say what is left to do, and a second supervisor
// continues from them.
//
// Order (leave a step out and frames tear, repeat or get lost):
//   1. appoint() a successor (the epoch rises), doom() the entry;
//   2. revoke(): IDLE -> the successor's epoch; OPEN, SUBMITTED -> ABORTED; COMMITTED -> its remaining steps
//      now, then IDLE. When it returns true, only ABORTED words bear the epoch: nothing of that incarnation
//      can commit any more.
//   3. the kill, through the pidfd;
//   4. requeue(): leases tagged by ABORTED jobs -> WAIT, their FILL slots -> QUARANTINED. Repeated until the
//      fence and once after it, since a process that is stopped between two of its own CASes may still tag
//      words;
//   5. after the fence (the process is gone and its device work with it): reclaim(): QUARANTINED -> FREE,
//      ABORTED -> IDLE.

#include <functional>
#include <optional>

#include "ring/participants.hpp"

namespace carousel::ring {

/// How a death counts for the frames that were in flight.
enum class blame : u8 {
    none,  ///< killed from outside: the frames are innocent
    own,   ///< fault, abort, exception, exit, deadline
};

struct job_census {
    u32 by_state[5] = {};  ///< words that bear the epoch, by job_state
    u32 in_flight = 0;     ///< OPEN or SUBMITTED or ABORTED: frames a death throws back
};
[[nodiscard]] job_census census(const shm::control_block& c, u32 seat, u32 epoch) noexcept;

/// R2. `successor` in the code is the seat's present epoch. True when the incarnation is revoked. `committed`
/// is told the frame of each COMMITTED word before the word is moved on, maybe more than once: a dead sink
/// may have had no time to enter it in its ledger. It must not throw.
bool revoke(shm::control_block& c, u32 seat, u32 dead_epoch,
            const std::function<void(u64)>& committed = {}) noexcept;
/// R4. With blame::own, counts an attempt if exactly one frame was in flight (`in_flight` of the census taken
/// before), else marks the frames to be leased alone. True when nothing tagged was found.
bool requeue(shm::control_block& c, u32 seat, u32 dead_epoch, blame why, u32 in_flight) noexcept;
/// R5, behind the fence. True when nothing bears the epoch any more.
bool reclaim(shm::control_block& c, u32 seat, u32 dead_epoch) noexcept;

/// Behind the fence, too: an asset that the dead one was loading is EMPTY again, now that nothing of it can
/// write any more.
void reset_assets(shm::control_block& c, u32 seat, u32 dead_epoch) noexcept;

/// Rings every stage at the links of the seat's stage.
void ring_neighbours(shm::control_block& c, u32 seat) noexcept;
/// A closed group's WAIT words are passed by from now on (an optional stage has failed for good; nobody is in
/// a port that skips). True: it was open.
bool close_group(shm::control_block& c, u32 link, u32 group) noexcept;
/// What still WAITs, and what comes, is its readers' again. Returns true if the group is BLOCKING now; false:
/// its word is damaged or was changed meanwhile.
bool open_group(shm::control_block& c, u32 link, u32 group) noexcept;
/// Frees places in latest groups whose member is fenced or gone.
void dismiss_latest(shm::control_block& c, u32 entry) noexcept;

/// The end of a run, phase 1: END unknown, or given -> STOPPING. No source leases from then on. Only the
/// first call does anything.
void begin_stop(shm::control_block& c) noexcept;
/// The first number that no source has begun: it is leased or done by none, nor is any above it. Nothing: a
/// word that would tell is damaged.
[[nodiscard]] std::optional<u64> first_unbegun(const shm::control_block& c) noexcept;
/// Phase 2: once every live source has acknowledged (revoked ones need not), END = 1 + the highest number
/// leased or done. True when END is known.
bool try_finish_stop(shm::control_block& c) noexcept;
/// Tails of all links have reached END.
[[nodiscard]] bool all_delivered(const shm::control_block& c) noexcept;

}  // namespace carousel::ring
