#pragma once
// The words of the primitives between processes. A word has 64 bits, is in shared memory, and is changed by
// compare-and-swap (CAS), which expects exactly the value that was read before. While a space is in use, no
// process changes its words by plain stores.
//
//   owner word   {count:36, epoch:24, state:4}     the owner, and the round
//   task word    {generation:32, attempts:4, epoch:24, state:4}
//   entry word   {pid:36, epoch:24, state:4}       the registry's
//   tally        {count:24, place:24, round:16}    counts losses by crashes, each once
//
// An epoch permanently identifies one incarnation of one client; the registry has the client's pid and start
// time. Epoch 0 means none. Counts wrap around, so words are compared for equality and rounds by their
// distance (round_of).
//
// Memory order: every CAS is acq_rel, and every read of a word is acquire. So a process that reads a word
// also sees everything that the word's writer had written before, including payloads: a payload is written
// between the CAS that claims its place and the CAS that publishes it, and is read between the CAS that takes
// it and the CAS that frees it.
//
// A word is changed only by CPUs or only by kernels, because an atomic operation of a CPU is not atomic for a
// kernel, and vice versa. The steps of the primitives that both sides use are templates (queue_body.hpp,
// task_body.hpp). Their parameter Side provides the operations on words: cpu_words (below), or the class for
// the GPU (cuda/).

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
/// Moves a hint, which is never authoritative, from `seen` to `next`, unless another process has changed it
/// meanwhile.
inline void hint(word& at, u64 seen, u64 next) { (void)cas(at, seen, next); }

/// The operations on words for CPUs, for a body (queue_body.hpp).
struct cpu_words {
    using word = ipc::word;
    [[nodiscard]] static u64 load(const word& at) { return ipc::load(at); }
    static bool cas(word& at, u64 expected, u64 desired) { return ipc::cas(at, expected, desired); }
};

[[nodiscard]] inline u64 counted(const word& tally) { return load(tally) >> 40U; }

static_assert(sizeof(word) == 8 && word::is_always_lock_free);
static_assert(sizeof(shm::doorbell_word) == 64);

}  // namespace carousel::ipc
