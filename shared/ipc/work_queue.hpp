#pragma once
// Tasks between processes: each is committed once, despite crashes, or ends as a dead letter.
//
//   task word   {generation, attempts, epoch, state}     a task has a place of its own, in no order
//     FREE(g) -> FILLING(g, e) -> WAITING(g, a) -> CLAIMED(g, a, e) -> FREE(g + 1)       committed
//     CLAIMED after a crash, or fail() -> WAITING(g, a + 1), or at max_attempts DEAD_LETTER(g, a + 1)
//     DEAD_LETTER(g) -> READING(g, e) -> FREE(g + 1)                                     taken out
//   next free, next waiting: hints at which a search begins
//
// A task's name is {place, generation}. commit() is one CAS that expects exactly this claim, so a task is
// committed once, by the client that holds the claim. A worker's effects outside the queue (for example a
// file) happen at least once, so they must contain the task's name, and repeating them for the same name must
// have no further effect. Tasks are claimed in approximate order, which is not guaranteed. The search for a
// task is circular, so no task is skipped indefinitely.
//
// clang-format off
// step                             | a crash right after it leaves        | repaired by
// FREE -> FILLING, the payload     | a place that is occupied             | repair: FREE(g + 1)
// FILLING -> WAITING               | a task; no waiter woken              | sleeps are 100 ms at most
// WAITING -> CLAIMED               | a claim                              | repair: WAITING or DEAD_LETTER,
//                                  |                                      | one more attempt
// CLAIMED -> FREE, WAITING, or     | it is completed; no waiter woken     | sleeps are 100 ms at most
//   DEAD_LETTER                    |                                      |
// DEAD_LETTER -> READING, the copy | a dead letter that no process has    | repair: DEAD_LETTER
// repair, interrupted anywhere     | some words repaired, each by one CAS | the next holder repairs again
// clang-format on
//
// Memory order: as in the queue. The payload is written in FILLING, and read in CLAIMED and READING.

#include <optional>
#include <vector>

#include "ipc/step.hpp"
#include "ipc/task_body.hpp"

namespace carousel::ipc {

struct work_queue_block {
    u32 capacity, task_bytes, max_attempts, reserved;  ///< written once
    shm::doorbell_word bell;
    alignas(64) word next_free;
    alignas(64) word next_waiting;
    // followed by the task words, then the tasks
    [[nodiscard]] word* place() { return reinterpret_cast<word*>(this + 1); }
    [[nodiscard]] u8* task(u64 k) {
        return reinterpret_cast<u8*>(place() + capacity) + k * ((u64{task_bytes} + 7) / 8 * 8);
    }
    [[nodiscard]] static u64 bytes(u32 capacity, u32 task_bytes) {
        return sizeof(work_queue_block) + capacity * (sizeof(word) + (u64{task_bytes} + 7) / 8 * 8);
    }
    [[nodiscard]] task_parts<word> parts() {
        return {place(), task(0), &next_free, &next_waiting, capacity, task_bytes, max_attempts};
    }
    void make(u32 tasks, u32 bytes_each, u32 attempts) {
        capacity = tasks, task_bytes = bytes_each, max_attempts = attempts;
    }
};
static_assert(sizeof(work_queue_block) == 256);

enum class task_fate : u8 {
    waiting,
    claimed,
    dead_letter,
    over
};  ///< over: the task was committed, or removed as a dead letter

class work_queue {
public:
    work_queue(work_queue_block& b, u32 epoch) : b_(&b), epoch_(epoch) {}
    /// Returns nothing if no place is free.
    [[nodiscard]] std::optional<task_name> try_submit(const void* task);
    [[nodiscard]] std::optional<task_name> submit(const void* task, u64 timeout_ns);
    /// Returns nothing if no task is waiting.
    [[nodiscard]] std::optional<claimed_task> try_claim(void* task);
    [[nodiscard]] std::optional<claimed_task> claim(void* task, u64 timeout_ns);
    /// Returns false if this client does not hold that claim (any more).
    bool commit(const claimed_task& t);
    /// Counts a failed attempt: the task waits again, or becomes a dead letter.
    bool fail(const claimed_task& t);
    /// Copies a dead letter and removes it; a crash between the two steps leaves the dead letter in the
    /// queue. Returns nothing if there is none.
    [[nodiscard]] std::optional<claimed_task> take_dead_letter(void* task);

    [[nodiscard]] task_fate fate(const task_name& t) const;
    [[nodiscard]] u32 count(task_state s) const;
    /// The epochs of the claimers, one entry per claim.
    [[nodiscard]] std::vector<u32> claimers() const;

private:
    [[nodiscard]] task_body<cpu_side> body() const { return {b_->parts(), epoch_}; }
    work_queue_block* b_;
    u32 epoch_;
};

/// Called after the fence of `dead`. May be repeated.
void repair(work_queue_block& b, u32 dead);

}  // namespace carousel::ipc
