#pragma once
// Named points at which a test can make a process crash. There is a crash point between any two steps of the
// protocol, of attaching, of set-up and of shutdown. Crash points are in every build, so that the tested
// program is the shipped one; without a plan a crash point costs one load and one branch that is never taken.
// -DCAROUSEL_CRASH_POINTS=OFF removes them. The plan is a text file, named by CAROUSEL_CRASH_PLAN; a line is
//   ROLE POINT HOW NTH        e.g.  fragment job_submitted kill 20
// ROLE: a stage's name, or "supervisor". HOW: kill | stop | abort | exit | throw. NTH: the line fires when
// this process passes the point for the NTH time, counted from 1. The lines of a role fire in order, each
// once: a line becomes active after the previous line has fired (in any incarnation). Before a line fires,
// the process creates the file PLAN.LINE (LINE from 1), which shows the owner of the plan which lines have
// fired.

#include <functional>
#include <string_view>

#include "core/types.hpp"

namespace carousel {

enum class crash_point : u8 {
    // attach and set-up of a stage
    process_started,  ///< the program runs, but the supervisor does not know of it
    connected,        ///< the process is connected to the supervisor's socket
    introduced,       ///< hello is sent, the reply is not read yet
    memory_received,  ///< the fds are received, nothing is mapped yet
    segment_mapped,   ///< the control block is mapped, the entry is not claimed yet
    entry_claimed,    ///< the entry contains this pid
    configured,       ///< the settings are read, no device is open yet
    device_open,
    links_mapped,
    events_published,
    asset_loading,  ///< the asset is marked LOADING by this process
    asset_loaded,   ///< the asset is filled, but still LOADING
    prepared,       ///< the set-up is complete, the entry is not LIVE yet
    live,           ///< the entry is LIVE, which is not yet reported to the supervisor
    ready_reported,
    standing_by,           ///< a standby has reported ready, and sleeps
    took_over,             ///< a standby has become the holder of its seat, and has leased nothing yet
    start_over_requested,  ///< a standby is to start over (a rebuild), and still maps everything
    detached,              ///< it has unmapped the memory of the run, and has not reported that
    detach_reported,
    // a frame: lease
    job_chosen,       ///< a frame is chosen, the job word is still IDLE
    job_opened,       ///< the job word is OPEN, nothing is leased yet
    sequence_leased,  ///< (source) the frame's number is LEASED
    input_leased,     ///< one input is LEASED
    slot_filled,      ///< an output slot is FILL, its header is still the previous frame's
    /// (source) a parameter set is assigned to the frame number, the header is still the previous frame's
    parameters_chosen,
    header_written,
    // a frame: work and hand-over
    clock_started,   ///< the deadline runs, nothing is enqueued yet
    event_recorded,  ///< all work is enqueued and the event recorded, the job word is still OPEN
    job_submitted,   ///< the job word is SUBMITTED, no process has been woken yet
    work_complete,   ///< the device has finished, the job word is still SUBMITTED
    host_work_done,  ///< (sink) the frame's external effect has happened, the job word is still SUBMITTED
    job_committed,   ///< the job word is COMMITTED, the slot is still FILL
    slot_ready,      ///< the slot is READY, no process has been woken yet
    number_done,     ///< (source) the frame's number waits for the next lap
    input_done,      ///< one input is DONE
    job_idle,        ///< the job word is IDLE again, nothing is freed yet
    end_claimed,     ///< (source) the source has stored its claim that its stream ends before this frame; no
                     ///< process has read the claim yet
    end_known,  ///< (source) END confirms the claim; the frame, which does not exist, still occupies a number
                ///< and a slot
    // freeing, helping, latest readers
    tail_moved,     ///< the tail has passed a frame that is not freed yet
    latest_closed,  ///< the groups of kind `latest` can no longer take the slot, but the slot is not freed
                    ///< yet
    slot_freed,
    help_committed,  ///< a helper has committed another stage's job, the slot is still FILL
    help_ready,
    latest_leased,
    latest_read,  ///< the data of a latest read has been used, the lease is still held
    latest_released,
    // the end of a run
    end_seen,  ///< all frames are delivered, the completion thread still runs
    work_ended,
    run_over,  ///< the work of the stage object is finished, but an exit would still count as a fault
    leaving,   ///< exit is expected from now on
    // the supervisor: starting a stage, retiring a process, taking over a run
    entry_prepared,    ///< an entry is STARTING, its seat still names the previous entry
    entry_appointed,   ///< the seat names an entry that is not assigned to a process yet
    stage_spawned,     ///< a process that the supervisor has not recorded is running
    stage_reattached,  ///< a process that starts over has the answer with its new entry
    entry_doomed,      ///< the dead process's entry is DOOMED, its words are not revoked yet
    words_revoked,     ///< no job of the dead process can commit, its frames are still leased
    words_requeued,    ///< the dead process's frames are available again, no successor has been started yet
    death_judged,      ///< the restart policy is applied: the successor has been started, or will be
    entry_fenced,      ///< the end of the process is confirmed, its buffers are in quarantine
    words_reclaimed,
    run_taken_over,     ///< dead processes are retired, no stage has reconnected yet
    stage_returned,     ///< one stage has reconnected
    parameters_filled,  ///< a change of parameters is written, and not yet valid
    end_kept,           ///< the end of a stream is saved for the next supervisor, END is not set yet
    seat_named,         ///< (promotion) the seat names a standby whose entry has no epoch yet
    account_written,    ///< a ledger's new account is written next to the old account, which is still valid
    account_saved,      ///< the new account is valid, the space of the folded records is not released yet
    reload_intended,    ///< a reload is saved for the next supervisor, the plan is still the old one
    plan_replaced,      ///< the new plan is saved, none of its changes is made yet
    // the supervisor: a rebuild (B1 to B4)
    rebuild_begun,   ///< every process is revoked, and is killed unless it belongs to a port; none is fenced
    rebuild_fenced,  ///< every process is gone, or belongs to a port; memory and ledgers are as they were
    devices_chosen,  ///< stages move to another device: the new choice is saved, memory and words are as they
                     ///< were
    memory_remade,   ///< memory of a dead owner is allocated again, the ledgers are as they were
    ledgers_ended,   ///< each ledger ends at its sink's position
    block_removed,   ///< the old block has no name any more
    block_filled,    ///< a new block is filled in, no process can attach to it yet; also at the run's start
    block_rebuilt,   ///< the new block is valid, no process has been started for it
    count_
};
[[nodiscard]] std::string_view name_of(crash_point point) noexcept;

namespace detail {
extern bool crash_points_armed;  ///< written only once, before any other thread exists
void reach(crash_point point);
}  // namespace detail

/// Reads CAROUSEL_CRASH_PLAN, if set, for a process with this role. Must be called first in main(). Throws
/// config_error if the plan can't be read, because the test would then kill no process, and would pass.
void arm_crash_points(std::string_view role);

inline void crash_here([[maybe_unused]] crash_point point) {
#ifndef CAROUSEL_NO_CRASH_POINTS
    if (detail::crash_points_armed) [[unlikely]]
        detail::reach(point);
#endif
}

// Tests that run participants as objects or threads of one process can set a function, which is then called
// between two steps.

/// Sets the function that is called at every crash point, on the thread that passes the point; an empty
/// function removes it. To be called while no other thread runs.
void set_crash_hook(std::function<void(crash_point)> at_each);

}  // namespace carousel
