#pragma once
// The words of the primitives between processes: 64 bits each, in shared memory, changed by compare-and-swap
// (CAS) that expects the exact word which was read. No process uses plain stores on a word of a space in use.
//
//   owner word   {count:36, epoch:24, state:4}     the owner, and the round
//   task word    {generation:32, attempts:4, epoch:24, state:4}
//   entry word   {pid:36, epoch:24, state:4}       the registry's
//   tally        {count:24, place:24, round:16}    counts losses by crashes, each once
//
// An epoch permanently identifies one incarnation of one client: the registry has its (pid, start time). 0
// means none. Counts wrap around, so words are compared for equality and rounds by their distance (round_of).
//
// Memory order: every CAS is acq_rel, and every read of a word is acquire. So a process that sees a word also
// sees everything that its writer had written before, payloads included: a payload is written between the CAS
// that claims its place and the CAS that publishes it, and read between the CAS that takes it and the CAS
// that frees it.
//
// A word is changed only by CPUs or only by kernels, because the atomics of one side are not atomic for the
// other. The operations on words are written once (queue_body.hpp, task_body.hpp) as templates over a Side:
// cpu_words below, or the GPU's (cuda/).

#include <atomic>

#include "ipc/owner_word.hpp"
#include "shm/control_block.hpp"

namespace carousel::ipc {

using shm::word;

inline bool cas(word& at, u64 expected, u64 desired) {
    return at.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                      std::memory_order_acquire);
}
[[nodiscard]] inline u64 load(const word& at) { return at.load(std::memory_order_acquire); }
/// Moves a hint, which is never authoritative, from `seen` to `next` unless another process was faster.
inline void hint(word& at, u64 seen, u64 next) { (void)cas(at, seen, next); }

/// The CPU's operations on words, for a body (queue_body.hpp).
struct cpu_words {
    using word = ipc::word;
    [[nodiscard]] static u64 load(const word& at) { return ipc::load(at); }
    static bool cas(word& at, u64 expected, u64 desired) { return ipc::cas(at, expected, desired); }
};

[[nodiscard]] inline u64 counted(const word& tally) { return load(tally) >> 40U; }

static_assert(sizeof(word) == 8 && word::is_always_lock_free);
static_assert(sizeof(shm::doorbell_word) == 64);

}  // namespace carousel::ipc
