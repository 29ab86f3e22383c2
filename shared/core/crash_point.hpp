#pragma once
// Named places at which a test can make a process die: between any two steps of the protocol, of attaching,
// of setting up, of ending. They are in every build, so that what is tested is what is shipped; a process
// that has no plan pays one load and one branch that is never taken. -DCAROUSEL_CRASH_POINTS=OFF leaves them
// out altogether.
//
// The plan is a text file, named by CAROUSEL_CRASH_PLAN; a line is
//   ROLE POINT HOW NTH        e.g.  fragment job_submitted kill 20
// ROLE: a stage's name, or "supervisor". HOW: kill | stop | abort | exit | throw. NTH: at which passage of
// this process, from 1. A role's lines fire in their order, each once: the line's turn comes when the one
// before it has fired (in whatever life), and firing creates the file PLAN.LINE (from 1) first, so the plan's
// owner sees what has happened.

#include <string_view>

#include "core/types.hpp"

namespace carousel {

enum class crash_point : u8 {
    // attach and set-up of a stage
    process_started,  ///< the program runs, nobody knows of it
    connected,        ///< to the supervisor's socket
    introduced,       ///< hello sent, no answer read
    memory_received,  ///< holds the fds, nothing mapped
    segment_mapped,   ///< the control block is mapped, the entry is not claimed
    entry_claimed,    ///< the entry bears this pid
    configured,       ///< settings read, no device yet
    device_open,
    links_mapped,
    events_published,
    asset_loading,  ///< the asset is marked LOADING by this process
    asset_loaded,   ///< filled, still LOADING
    prepared,       ///< all done but the entry is not LIVE
    live,           ///< LIVE, the supervisor has not been told
    ready_reported,
    standing_by,  ///< a standby has told that it is ready, and sleeps
    took_over,    ///< a standby has become the holder of its seat, and has leased nothing
    // a frame: lease
    job_chosen,         ///< a frame is chosen, the job word is IDLE
    job_opened,         ///< OPEN, nothing leased
    sequence_leased,    ///< (source) its number is LEASED
    input_leased,       ///< one input is LEASED
    slot_filled,        ///< an output slot is FILL, its header is the old frame's
    parameters_chosen,  ///< (source) its number has its set, the header is the old frame's
    header_written,
    // a frame: work and hand-over
    clock_started,   ///< the deadline runs, nothing is enqueued
    event_recorded,  ///< all work enqueued, the event recorded, still OPEN
    job_submitted,   ///< SUBMITTED, nobody has been woken
    work_complete,   ///< the device is done, still SUBMITTED
    host_work_done,  ///< (sink) its outside effect happened, still SUBMITTED
    job_committed,   ///< COMMITTED, the slot is still FILL
    slot_ready,      ///< READY, nobody has been woken
    number_done,     ///< (source) its number waits for the next lap
    input_done,      ///< one input is DONE
    job_idle,        ///< IDLE again, nothing freed
    end_claimed,     ///< (source) it has said that its stream ends before this frame, nobody has heard it
    end_known,  ///< (source) END says so too, the frame that doesn't exist still holds its number and its
                ///< slot
    // freeing, helping, latest readers
    tail_moved,     ///< the tail has passed a frame that is not freed
    latest_closed,  ///< latest groups are closed for a slot that is not freed
    slot_freed,
    help_committed,  ///< a helper has committed another's job, the slot is still FILL
    help_ready,
    latest_leased,
    latest_read,  ///< what was read is used, the lease is held
    latest_released,
    // the end of a run
    end_seen,  ///< everything is delivered, the completion thread still runs
    work_ended,
    run_over,  ///< the stage object's work is over, an exit would still be a fault
    leaving,   ///< exit is expected
    // the supervisor: a start, a retirement, taking a run over
    entry_prepared,   ///< an entry is STARTING, its seat still names the one before
    entry_appointed,  ///< the seat names an entry that nobody has been told of
    stage_spawned,    ///< a process runs that nobody has noted
    entry_doomed,     ///< the dead one is DOOMED, its words are its own
    words_revoked,    ///< nothing of it can commit, its frames are still leased
    words_requeued,   ///< its frames wait again, no successor is wanted yet
    death_judged,     ///< the successor has been started, or will be
    entry_fenced,     ///< it is known to be gone, its buffers are in quarantine
    words_reclaimed,
    run_taken_over,     ///< the dead are retired, no stage has come back
    stage_returned,     ///< one has
    parameters_filled,  ///< a change is written and doesn't count yet
    end_kept,           ///< a stream's end is kept for a next supervisor, END doesn't say it yet
    seat_named,         ///< (promotion) the seat names a standby whose entry bears no epoch yet
    account_written,    ///< a ledger's new account is written next to the old one, which still counts
    account_saved,      ///< the new account counts, the space of the folded records is not given back
    count_
};
[[nodiscard]] std::string_view name_of(crash_point point) noexcept;

namespace detail {
extern bool crash_points_armed;  ///< written once, before other threads exist
void reach(crash_point point);
}  // namespace detail

/// Reads CAROUSEL_CRASH_PLAN, if set, for a process of this role. Call it first in main(). Throws
/// config_error when the plan can't be read: a test that kills nobody must not pass.
void arm_crash_points(std::string_view role);

inline void crash_here([[maybe_unused]] crash_point point) {
#ifndef CAROUSEL_NO_CRASH_POINTS
    if (detail::crash_points_armed) [[unlikely]]
        detail::reach(point);
#endif
}

}  // namespace carousel
