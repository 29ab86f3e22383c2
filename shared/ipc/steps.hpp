#pragma once
// The named steps of the primitives, at which tests look, stop and kill (step.hpp).

#include "core/types.hpp"

namespace carousel::ipc {

enum class step : u8 {
    // the registry, in the holder
    epoch_drawn,     ///< a number is used up, no entry bears it
    entry_attached,  ///< the entry says ATTACHED, the client doesn't know
    entry_dead,      ///< DEAD, nothing of it is mended
    entry_fenced,    ///< FENCED, nothing of it is mended
    entry_freed,     ///< mended, and free for another
    // a semaphore
    line_joined,      ///< in the line
    turn_checked,     ///< some of those in front or of the permits are counted
    turn_known,       ///< it may take a permit, and has none
    permit_taken,     ///< holds it, and is still in the line
    line_left,        ///< has left the line, nobody is woken
    permit_released,  ///< given back, nobody is woken
    line_passed,      ///< the first of the line is out of it, for it was late; nobody is woken
    // a queue
    cell_claimed,    ///< the cell is its own, what stands in it is of another round
    cell_written,    ///< written, not published
    cell_published,  ///< published, nobody is woken
    cell_passed,     ///< a consumer looks at the next one
    cell_popping,    ///< taken for good, not copied
    cell_leased,     ///< leased, not committed
    cell_consumed,   ///< free for the next round, nobody is woken
    cell_returned,   ///< given back by a living one
    // a work queue
    task_filling,    ///< the place is its own, the task is not written
    task_written,    ///< written, nobody can claim it
    task_submitted,  ///< waits, nobody is woken
    task_claimed,
    task_committed,
    task_failed,       ///< counted as an attempt, waits again or is a dead letter
    dead_letter_read,  ///< a dead letter is copied, and is still there
    // a pool
    serial_drawn,    ///< a number is used up, no block bears it
    head_claimed,    ///< the first unit of a block
    body_claimed,    ///< a further one
    block_owned,     ///< the block is whole
    block_leaving,   ///< given up, none of its units is free
    body_freed,      ///< a unit that isn't the first
    block_freed,     ///< all of it, nobody is woken
    block_named,     ///< a published cell names it, its word names the giver
    block_sent,      ///< its word says that it is the cell's
    block_received,  ///< the receiver's, the cell still names it
    // a gate: of the client, then of the holder
    gate_timed,      ///< its deadline is far, and it is not PENDING
    gate_opened,     ///< PENDING, the stream isn't told
    gate_requested,  ///< the stream is there, its deadline is stored
    gate_closed,     ///< answered, by whoever was first
    gate_checked,    ///< the holder knows its word
    gate_late,       ///< and that it is a second late
    // a mend, in the holder
    repair_begun,
    word_repaired,  ///< one word is mended
    loss_marked,    ///< LOST, not counted
    loss_counted,   ///< counted, still LOST
    repair_done,
    // a mender, in the holder
    repairer_started,   ///< it has heard nothing, and nobody knows of it
    repairer_named,     ///< its process stands in the space
    repairer_notified,  ///< it mends
    repairer_replied,   ///< it has said that it is done, and no entry is free
    count_
};

}  // namespace carousel::ipc
