#pragma once
// Counts of losses by crashes, each loss once: {count:24, place:24, round:16} (words.hpp).

#include "ipc/owner_word.hpp"

namespace carousel::ipc {

/// Counts a loss at `place` in `round` exactly once, however often a repair is interrupted and restarted. The
/// place stays in a separate state (LOST) from before it is counted until after that, and only one repair at
/// a time counts, one place after another. So only the last counted place can be encountered again; each
/// repair begins with the places that it finds LOST and then clears the tally (count_done).
template <class Side>
CAROUSEL_SIDE void count_once(typename Side::word& tally, u64 place, u64 round) {
    const u64 before = Side::load(tally), mark = ((place + 1) & 0xFFFFFFU) << 16U | (round & 0xFFFFU);
    if ((before & ((u64{1} << 40) - 1)) == mark) return;
    (void)Side::cas(tally, before, ((before >> 40U) + 1) << 40U | mark);
}
/// To be called when the place is no longer LOST: a later loss at this place is a different one, although its
/// round may compare equal.
template <class Side>
CAROUSEL_SIDE void count_done(typename Side::word& tally) {
    const u64 before = Side::load(tally);
    (void)Side::cas(tally, before, before >> 40U << 40U);
}

}  // namespace carousel::ipc
