#pragma once
// Named points at which a test can make a process crash: between any two steps of the protocol, of attaching,
// of set-up and of shutdown. They are in every build, so that the tested program is the shipped one; without
// a plan a point costs one load and one branch that is never taken. -DCAROUSEL_CRASH_POINTS=OFF removes them.
//
// The plan is a text file, named by CAROUSEL_CRASH_PLAN; a line is
//   ROLE POINT HOW NTH        e.g.  fragment job_submitted kill 20
// ROLE: a stage's name, or "supervisor". HOW: kill | stop | abort | exit | throw. NTH: the passage of the
// point by this process at which it fires, from 1. The lines of a role fire in order, each once: a line
// becomes active once the previous one has fired (in any incarnation). Before a line fires, the process
// creates the file PLAN.LINE (LINE from 1), which shows the owner of the plan which lines have fired.

#include <string_view>

#include "core/types.hpp"

namespace carousel {

enum class crash_point : u8 {
    // attach and set-up of a stage
    process_started,  ///< the program runs, the supervisor does not know of it
    connected,        ///< to the supervisor's socket
    introduced,       ///< hello sent, no reply read
    memory_received,  ///< has received the fds, nothing mapped
    segment_mapped,   ///< the control block is mapped, the entry is not claimed
    entry_claimed,    ///< the entry has this pid
    configured,       ///< settings read, no device yet
    device_open,
    links_mapped,
    events_published,
    asset_loading,  ///< the asset is marked LOADING by this process
    asset_loaded,   ///< filled, still LOADING
    prepared,       ///< everything done, the entry is not LIVE
    live,           ///< LIVE, not yet reported to the supervisor
    ready_reported,
    standing_by,  ///< a standby has reported ready, and sleeps
    took_over,    ///< a standby has become the holder of its seat, and has leased nothing
    // a frame: lease
    job_chosen,         ///< a frame is chosen, the job word is IDLE
    job_opened,         ///< OPEN, nothing leased
    sequence_leased,    ///< (source) its number is LEASED
    input_leased,       ///< one input is LEASED
    slot_filled,        ///< an output slot is FILL, its header is the previous frame's
    parameters_chosen,  ///< (source) its number has its set, the header is the previous frame's
    header_written,
    // a frame: work and hand-over
    clock_started,   ///< the deadline runs, nothing is enqueued
    event_recorded,  ///< all work enqueued, the event recorded, still OPEN
    job_submitted,   ///< SUBMITTED, no process has been woken
    work_complete,   ///< the device is done, still SUBMITTED
    host_work_done,  ///< (sink) its external effect happened, still SUBMITTED
    job_committed,   ///< COMMITTED, the slot is still FILL
    slot_ready,      ///< READY, no process has been woken
    number_done,     ///< (source) its number waits for the next lap
    input_done,      ///< one input is DONE
    job_idle,        ///< IDLE again, nothing freed
    end_claimed,  ///< (source) it has claimed that its stream ends before this frame, no process has read the
                  ///< claim
    end_known,  ///< (source) END confirms the claim; the frame that doesn't exist still holds its number and
                ///< its slot
    // freeing, helping, latest readers
    tail_moved,     ///< the tail has passed a frame that is not freed
    latest_closed,  ///< latest groups are closed for a slot that is not freed
    slot_freed,
    help_committed,  ///< a helper has committed another stage's job, the slot is still FILL
    help_ready,
    latest_leased,
    latest_read,  ///< the data read has been used, the lease is still held
    latest_released,
    // the end of a run
    end_seen,  ///< everything is delivered, the completion thread still runs
    work_ended,
    run_over,  ///< the stage object's work is finished, an exit would still be a fault
    leaving,   ///< exit is expected from now on
    // the supervisor: a start, a retirement, taking over a run
    entry_prepared,   ///< an entry is STARTING, its seat still names the previous entry
    entry_appointed,  ///< the seat names an entry that no process has received yet
    stage_spawned,    ///< a process runs that the supervisor has not recorded
    entry_doomed,     ///< the dead process's entry is DOOMED, its words are not revoked
    words_revoked,    ///< none of its jobs can commit, its frames are still leased
    words_requeued,   ///< its frames are available again, no successor has been started yet
    death_judged,     ///< the successor has been started, or will be
    entry_fenced,     ///< its end is confirmed, its buffers are in quarantine
    words_reclaimed,
    run_taken_over,     ///< dead processes are retired, no stage has reconnected
    stage_returned,     ///< one stage has reconnected
    parameters_filled,  ///< a change is written and not yet valid
    end_kept,           ///< the end of a stream is saved for the next supervisor, END is not set yet
    seat_named,         ///< (promotion) the seat names a standby whose entry has no epoch yet
    account_written,    ///< a ledger's new account is written next to the old one, which is still valid
    account_saved,      ///< the new account is valid, the space of the folded records is not released
    count_
};
[[nodiscard]] std::string_view name_of(crash_point point) noexcept;

namespace detail {
extern bool crash_points_armed;  ///< written once, before other threads exist
void reach(crash_point point);
}  // namespace detail

/// Reads CAROUSEL_CRASH_PLAN, if set, for a process with this role. Must be called first in main(). Throws
/// config_error if the plan can't be read: a test that kills no process must not pass.
void arm_crash_points(std::string_view role);

inline void crash_here([[maybe_unused]] crash_point point) {
#ifndef CAROUSEL_NO_CRASH_POINTS
    if (detail::crash_points_armed) [[unlikely]]
        detail::reach(point);
#endif
}

}  // namespace carousel
