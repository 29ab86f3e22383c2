#pragma once
// The named steps of the primitives, at which tests inspect, stop and kill (step.hpp).

#include "core/types.hpp"

namespace carousel::ipc {

enum class step : u8 {
    // the registry, in the holder
    epoch_drawn,     ///< an epoch has been drawn, no entry has it yet
    entry_attached,  ///< the entry is ATTACHED, the client has not been notified
    entry_dead,      ///< the entry is DEAD, nothing of the client is repaired yet
    entry_fenced,    ///< the entry is FENCED, nothing of the client is repaired yet
    entry_freed,     ///< the entry is repaired, and free for another client
    // a semaphore
    line_joined,      ///< the client is in the line
    turn_checked,     ///< some of the earlier waiters, or some permits, are counted
    turn_known,       ///< the client may take a permit, and has none yet
    permit_taken,     ///< the client holds a permit, and is still in the line
    line_left,        ///< the client has left the line, no waiter is woken yet
    permit_released,  ///< the permit is given back, no waiter is woken yet
    line_passed,      ///< the first waiter is removed because it was late; no waiter is woken yet
    // a queue
    cell_claimed,    ///< the cell is claimed, its element is not written yet
    cell_written,    ///< the element is written, not published yet
    cell_published,  ///< the cell is published, no waiter is woken yet
    cell_passed,     ///< a consumer checks the next cell
    cell_popping,    ///< the element is popped, but not copied yet
    cell_leased,     ///< the element is leased, not committed yet
    cell_consumed,   ///< the cell is free for the next round, no waiter is woken yet
    cell_returned,   ///< a live client has given the element back
    // a work queue
    task_filling,    ///< the place is claimed, the task is not written yet
    task_written,    ///< the task is written, not claimable yet
    task_submitted,  ///< the task waits, no waiter is woken yet
    task_claimed,
    task_committed,
    task_failed,       ///< the failure is counted as an attempt, and the task waits again or is a dead letter
    dead_letter_read,  ///< a dead letter is copied, but not removed yet
    // a pool
    serial_drawn,    ///< a serial has been drawn, no block has it yet
    head_claimed,    ///< the first unit of a block is claimed
    body_claimed,    ///< a further unit of the block is claimed
    block_owned,     ///< the block is complete
    block_leaving,   ///< the block is being freed, none of its units is free yet
    body_freed,      ///< a unit other than the first is freed
    block_freed,     ///< the whole block is free, no waiter has been woken yet
    block_named,     ///< a published cell names the block, whose word still names the sender
    block_sent,      ///< the block's word is IN_QUEUE: the cell owns the block
    block_received,  ///< the receiver owns the block, the cell still names it
    // a gate: steps of the client, then steps of the holder
    gate_timed,      ///< the gate's deadline is far in the future, and the gate is not PENDING yet
    gate_opened,     ///< the gate is PENDING, the wait is not enqueued on the stream yet
    gate_requested,  ///< the stream has reached the wait, and its deadline is stored
    gate_closed,     ///< the gate is closed; of the processes that try to close it, the first one succeeds
    gate_checked,    ///< the holder has read the gate's word
    gate_late,       ///< the holder has found a gate whose deadline passed a second ago
    // a repair, in the holder
    repair_begun,
    word_repaired,  ///< one word is repaired
    loss_marked,    ///< the place is LOST, the loss is not counted yet
    loss_counted,   ///< the loss is counted, the place is still LOST
    repair_done,
    // a repair process, in the holder
    repairer_started,   ///< the repair process has no instructions, and its id is not stored yet
    repairer_named,     ///< the id of the repair process is stored in the space
    repairer_notified,  ///< the repair process repairs the words
    repairer_replied,   ///< the repair process has replied, and no entry is free yet
    count_
};

}  // namespace carousel::ipc
