#pragma once
// Tasks between processes: each is committed once, whatever dies, or ends as a dead letter.
//
//   task word   {generation, attempts, epoch, state}     a task has a place for itself, in no order
//     FREE(g) -> FILLING(g, e) -> WAITING(g, a) -> CLAIMED(g, a, e) -> FREE(g + 1)       committed
//     CLAIMED of a dead one, or fail() -> WAITING(g, a + 1), or at max_attempts LETTER(g, a + 1)
//     LETTER(g) -> READING(g, e) -> FREE(g + 1)                                          taken out
//   next free, next waiting: hints, where to begin to look
//
// A task's name is {place, generation}. commit() is one CAS from the very claim, so a task is committed once:
// by the life that holds it. What a worker does outside (a file, a result elsewhere) happens at least once,
// so it must bear the task's name and be idempotent on it. Tasks wait in rough order, none that one may rely
// on; the look for work goes round, so none is left out for ever.
//
// step                             | a death right behind it leaves       | who mends it
// FREE -> FILLING, the payload     | a place that is taken up             | mend: FREE(g + 1)
// FILLING -> WAITING               | a task; nobody woken                 | sleeps are 100 ms at most
// WAITING -> CLAIMED               | a claim                              | mend: WAITING or LETTER, one
// attempt
//                                  |                                      | more
// CLAIMED -> FREE, WAITING, LETTER | it is done with; nobody woken        | sleeps are 100 ms at most
// LETTER -> READING, the copy      | a letter that nobody has             | mend: LETTER
// mend, cut off anywhere           | some words mended, each by one CAS   | the next holder mends again
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
    // task words, then tasks
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
};  ///< over: committed, or a letter that was taken

class work_queue {
public:
    work_queue(work_queue_block& b, u32 epoch) : b_(&b), epoch_(epoch) {}
    /// Empty: no place is free.
    [[nodiscard]] std::optional<task_name> try_submit(const void* task);
    [[nodiscard]] std::optional<task_name> submit(const void* task, u64 timeout_ns);
    /// Empty: nothing waits.
    [[nodiscard]] std::optional<claimed_task> try_claim(void* task);
    [[nodiscard]] std::optional<claimed_task> claim(void* task, u64 timeout_ns);
    /// False: it isn't this life's claim (any more).
    bool commit(const claimed_task& t);
    /// One attempt more: it waits again, or is a dead letter.
    bool fail(const claimed_task& t);
    /// Copies a dead letter and takes it out; a death in between leaves it there. Empty: there is none.
    [[nodiscard]] std::optional<claimed_task> take_dead_letter(void* task);

    [[nodiscard]] task_fate fate(const task_name& t) const;
    [[nodiscard]] u32 count(task_state s) const;
    /// The epochs of those who have claims, one each.
    [[nodiscard]] std::vector<u32> claimers() const;

private:
    [[nodiscard]] task_body<cpu_side> body() const { return {b_->parts(), epoch_}; }
    work_queue_block* b_;
    u32 epoch_;
};

/// Behind the fence of `dead`. May be repeated.
void repair(work_queue_block& b, u32 dead);

}  // namespace carousel::ipc
