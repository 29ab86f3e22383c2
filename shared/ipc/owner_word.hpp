#pragma once
// The word that stores an owner and a round (words.hpp). CPUs and kernels use the same code.

#include "core/host_device.hpp"
#include "core/types.hpp"

// In .cu files, functions with this mark are compiled for kernels; in other files, for the CPU.
#if defined(__CUDACC__)
#define CAROUSEL_SIDE __device__
#else
#define CAROUSEL_SIDE
#endif

namespace carousel::ipc {

inline constexpr u64 count_mask = (u64{1} << 36) - 1;
inline constexpr u32 epoch_mask = (u32{1} << 24) - 1;

template <class State>
struct owner_word {
    u64 count = 0;  ///< a lap, a generation or a serial number; each primitive's header states which one
    u32 epoch = 0;
    State state{};
    [[nodiscard]] CAROUSEL_HD static constexpr owner_word of(u64 w) {
        return {w >> 28U, static_cast<u32>(w >> 4U) & epoch_mask, static_cast<State>(w & 15U)};
    }
    [[nodiscard]] CAROUSEL_HD constexpr u64 pack() const {
        return (count & count_mask) << 28U | u64{epoch & epoch_mask} << 4U | static_cast<u64>(state);
    }
    bool operator==(const owner_word&) const = default;
};

/// Compares the round of a place with the round `expected`. Returns 0 if they are equal, 1 if the place is in
/// a later round, and -1 if it is in an earlier one.
[[nodiscard]] CAROUSEL_HD constexpr int round_of(u64 found, u64 expected) {
    const u64 ahead = (found - expected) & count_mask;
    return ahead == 0 ? 0 : ahead < (u64{1} << 35) ? 1 : -1;
}

// Tallies count losses by crashes, each loss once: {count:24, place:24, round:16} (words.hpp).

/// Counts a loss at `place` in `round` exactly once, however often a repair is interrupted and restarted. The
/// place is put into a separate state (LOST) before it is counted, and leaves this state after it is counted.
/// Only one repair counts at a time, and it counts one place after another. So the only place that may be
/// encountered a second time is the one that was counted last. Each repair begins with the places that it
/// finds LOST, and then clears the tally's record of the last place (count_done).
template <class Side>
CAROUSEL_SIDE void count_once(typename Side::word& tally, u64 place, u64 round) {
    const u64 before = Side::load(tally), mark = ((place + 1) & 0xFFFFFFU) << 16U | (round & 0xFFFFU);
    if ((before & ((u64{1} << 40) - 1)) == mark) return;
    (void)Side::cas(tally, before, ((before >> 40U) + 1) << 40U | mark);
}
/// To be called when the place is no longer LOST. Clears the record of the last place, because a later loss
/// at this place is a different loss, although its round may compare equal.
template <class Side>
CAROUSEL_SIDE void count_done(typename Side::word& tally) {
    const u64 before = Side::load(tally);
    (void)Side::cas(tally, before, before >> 40U << 40U);
}

}  // namespace carousel::ipc
