#pragma once
// The named steps of the primitives: between any two changes of shared memory a test can look, stop a client
// or make it die. In every build, so that what is tested is what is shipped; without a hook each costs one
// load and one branch that is never taken.
//
// A hook may throw: no function that passes a step is noexcept, and none has a guard that would undo on the
// way out what a death leaves.

#include <string_view>

#include "core/types.hpp"
#include "ipc/words.hpp"
#include "shm/doorbell.hpp"

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
    turn_looked,      ///< some of those in front or of the permits are counted
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
    task_letter_read,  ///< a dead letter is copied, and is still there
    // a pool
    serial_drawn,   ///< a number is used up, no block bears it
    head_claimed,   ///< the first unit of a block
    body_claimed,   ///< a further one
    block_owned,    ///< the block is whole
    block_leaving,  ///< given up, none of its units is free
    body_freed,     ///< a unit that isn't the first
    block_freed,    ///< all of it, nobody is woken
    block_named,    ///< a published cell names it, its word names the giver
    block_given,    ///< its word says that it is the cell's
    block_taken,    ///< the receiver's, the cell still names it
    // a mend, in the holder
    mend_begun,
    mended_word,   ///< one word is mended
    loss_marked,   ///< LOST, not counted
    loss_counted,  ///< counted, still LOST
    mend_done,
    count_
};
[[nodiscard]] std::string_view name_of(step s) noexcept;
inline constexpr u32 steps = static_cast<u32>(step::count_);

/// How a client sleeps and what time it is: tests that have no threads bring their own.
struct hooks {
    void (*at)(step s) = nullptr;
    u64 (*now_ns)() = nullptr;
    bool (*sleep)(shm::doorbell_word& bell, u32 seen, u64 timeout_ns) = nullptr;
};
/// Set it while no other thread uses a primitive. {} sets them back.
void set_hooks(const hooks& h) noexcept;

namespace detail {
extern hooks hooked;
}

inline void at(step s) {
    if (detail::hooked.at != nullptr) [[unlikely]]
        detail::hooked.at(s);
}
/// The CPU's side of a body, with its steps.
struct cpu_side : cpu_words {
    static void at(step s) { ipc::at(s); }
};
[[nodiscard]] u64 clock_ns();
/// The clock's reading after so long; never comes round.
[[nodiscard]] u64 deadline_after(u64 timeout_ns);
/// Sleeps at a doorbell until it rings or the deadline or 100 ms are over. False: the deadline is over.
bool sleep_until(shm::doorbell_word& bell, u32 seen, u64 deadline_ns);

}  // namespace carousel::ipc
