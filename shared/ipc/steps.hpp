#pragma once
// The named steps of the primitives, at which tests inspect, stop and kill (step.hpp).

#include "core/types.hpp"

namespace carousel::ipc {

enum class step : u8 {
    // the registry, in the holder
    epoch_drawn,     ///< a number is used up, no entry has it
    entry_attached,  ///< the entry is ATTACHED, the client has not been notified
    entry_dead,      ///< DEAD, nothing of it is repaired
    entry_fenced,    ///< FENCED, nothing of it is repaired
    entry_freed,     ///< repaired, and free for another
    // a semaphore
    line_joined,      ///< in the line
    turn_checked,     ///< some of the earlier waiters or of the permits are counted
    turn_known,       ///< it may take a permit, and has none
    permit_taken,     ///< holds it, and is still in the line
    line_left,        ///< has left the line, no waiter is woken
    permit_released,  ///< given back, no waiter is woken
    line_passed,      ///< the first of the line is removed because it was late; no waiter is woken
    // a queue
    cell_claimed,    ///< the cell is claimed, its content is of another round
    cell_written,    ///< written, not published
    cell_published,  ///< published, no waiter is woken
    cell_passed,     ///< a consumer checks the next one
    cell_popping,    ///< taken for good, not copied
    cell_leased,     ///< leased, not committed
    cell_consumed,   ///< free for the next round, no waiter is woken
    cell_returned,   ///< given back by a live client
    // a work queue
    task_filling,    ///< the place is claimed, the task is not written
    task_written,    ///< written, not claimable yet
    task_submitted,  ///< waits, no waiter is woken
    task_claimed,
    task_committed,
    task_failed,       ///< counted as an attempt, waits again or is a dead letter
    dead_letter_read,  ///< a dead letter is copied, and is still there
    // a pool
    serial_drawn,    ///< a number is used up, no block has it
    head_claimed,    ///< the first unit of a block
    body_claimed,    ///< a further one
    block_owned,     ///< the block is complete
    block_leaving,   ///< being freed, none of its units is free yet
    body_freed,      ///< a unit other than the first
    block_freed,     ///< the whole block is free, no waiter has been woken yet
    block_named,     ///< a published cell names it, its word names the sender
    block_sent,      ///< its word is IN_QUEUE: the cell owns it
    block_received,  ///< the receiver's, the cell still names it
    // a gate: of the client, then of the holder
    gate_timed,      ///< its deadline is far, and it is not PENDING
    gate_opened,     ///< PENDING, the wait is not enqueued on the stream
    gate_requested,  ///< the stream is there, its deadline is stored
    gate_closed,     ///< closed, by the first process to do so
    gate_checked,    ///< the holder has read its word
    gate_late,       ///< and has found it a second late
    // a repair, in the holder
    repair_begun,
    word_repaired,  ///< one word is repaired
    loss_marked,    ///< LOST, not counted
    loss_counted,   ///< counted, still LOST
    repair_done,
    // a repair process, in the holder
    repairer_started,   ///< it has no order, and its id is not stored
    repairer_named,     ///< its id is stored in the space
    repairer_notified,  ///< it repairs
    repairer_replied,   ///< it has replied, and no entry is free
    count_
};

}  // namespace carousel::ipc
