#pragma once
// The words of the primitives between processes: 64 bits each, in shared memory, changed by compare-and-swap
// (CAS) that expects the exact word which was read. Nobody stores plainly into a word of a living space.
//
//   owner word   {count:36, epoch:24, state:4}     who holds what, and in which round
//   task word    {generation:32, attempts:4, epoch:24, state:4}
//   entry word   {pid:36, epoch:24, state:4}       the registry's
//   tally        {count:24, place:24, round:16}    counts what deaths have cost, each loss once
//
// An epoch names one life of one client for good: (pid, start time) belong to it in the registry. 0 is
// nobody. Counts come round, so words are compared for equality and rounds by their distance (round_of).
//
// Memory order: every CAS is acq_rel and every read of a word acquire. So whoever sees a word also sees all
// that its writer had written before, payloads included: a payload is written between the CAS that claims its
// place and the CAS that publishes it, and read between the CAS that takes it and the CAS that frees it.

//
// A word is changed by CPUs alone, or by kernels alone: an atomic of one is none for the other. What is done
// to words is written once (queue_body.hpp, task_body.hpp) over a Side: cpu_words below, or a GPU's (cuda/).

#include <atomic>

#include "core/types.hpp"
#include "shm/control_block.hpp"

// CAROUSEL_EITHER: for the CPU and for kernels. CAROUSEL_SIDE: for the side that this file is compiled for.
#if defined(__CUDACC__)
#define CAROUSEL_EITHER __host__ __device__
#define CAROUSEL_SIDE __device__
#else
#define CAROUSEL_EITHER
#define CAROUSEL_SIDE
#endif

namespace carousel::ipc {

using shm::word;

inline constexpr u64 count_mask = (u64{1} << 36) - 1;
inline constexpr u32 epoch_mask = (u32{1} << 24) - 1;

template <class State>
struct owner_word {
    u64 count = 0;  ///< a lap, a generation or a serial number: the primitive's header says which
    u32 epoch = 0;
    State state{};
    [[nodiscard]] CAROUSEL_EITHER static constexpr owner_word of(u64 w) {
        return {w >> 28U, static_cast<u32>(w >> 4U) & epoch_mask, static_cast<State>(w & 15U)};
    }
    [[nodiscard]] CAROUSEL_EITHER constexpr u64 pack() const {
        return (count & count_mask) << 28U | u64{epoch & epoch_mask} << 4U | static_cast<u64>(state);
    }
    bool operator==(const owner_word&) const = default;
};

/// Where the round of a place stands as seen from round `expected`: 0 the same, 1 the place is further on,
/// -1 it is behind.
[[nodiscard]] CAROUSEL_EITHER constexpr int round_of(u64 found, u64 expected) {
    const u64 ahead = (found - expected) & count_mask;
    return ahead == 0 ? 0 : ahead < (u64{1} << 35) ? 1 : -1;
}

inline bool cas(word& at, u64 expected, u64 desired) {
    return at.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                      std::memory_order_acquire);
}
[[nodiscard]] inline u64 load(const word& at) { return at.load(std::memory_order_acquire); }
/// For hints, which decide nothing: from `seen` to `next`, unless somebody was faster.
inline void hint(word& at, u64 seen, u64 next) { (void)cas(at, seen, next); }

/// The CPU's side of a body.
struct cpu_words {
    using word = ipc::word;
    [[nodiscard]] static u64 load(const word& at) { return ipc::load(at); }
    static bool cas(word& at, u64 expected, u64 desired) { return ipc::cas(at, expected, desired); }
};

/// Counts a loss at `place` in `round` exactly once, however often a mend is cut off and begun again. The
/// place stays in a state of its own (LOST) from before it is counted until behind it, and only one mend at a
/// time counts, one place after the other. So the last one counted is the only one that can be met again,
/// where each mend begins with what it finds LOST and then clears the tally (count_done), whatever it knows.
template <class Side = cpu_words>
CAROUSEL_SIDE void count_once(typename Side::word& tally, u64 place, u64 round) {
    const u64 before = Side::load(tally), mark = ((place + 1) & 0xFFFFFFU) << 16U | (round & 0xFFFFU);
    if ((before & ((u64{1} << 40) - 1)) == mark) return;
    (void)Side::cas(tally, before, ((before >> 40U) + 1) << 40U | mark);
}
/// The place is LOST no more: a later loss there is another one, though its round may look the same.
template <class Side = cpu_words>
CAROUSEL_SIDE void count_done(typename Side::word& tally) {
    const u64 before = Side::load(tally);
    (void)Side::cas(tally, before, before >> 40U << 40U);
}
[[nodiscard]] inline u64 counted(const word& tally) { return load(tally) >> 40U; }

static_assert(sizeof(word) == 8 && word::is_always_lock_free);
static_assert(sizeof(shm::doorbell_word) == 64);

}  // namespace carousel::ipc
