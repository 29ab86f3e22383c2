#pragma once
// Counts of what deaths have cost, each loss once: {count:24, place:24, round:16} (words.hpp).

#include "ipc/owner_word.hpp"

namespace carousel::ipc {

/// Counts a loss at `place` in `round` exactly once, however often a mend is cut off and begun again. The
/// place stays in a state of its own (LOST) from before it is counted until behind it, and only one mend at a
/// time counts, one place after the other. So the last one counted is the only one that can be met again,
/// where each mend begins with what it finds LOST and then clears the tally (count_done), whatever it knows.
template <class Side>
CAROUSEL_SIDE void count_once(typename Side::word& tally, u64 place, u64 round) {
    const u64 before = Side::load(tally), mark = ((place + 1) & 0xFFFFFFU) << 16U | (round & 0xFFFFU);
    if ((before & ((u64{1} << 40) - 1)) == mark) return;
    (void)Side::cas(tally, before, ((before >> 40U) + 1) << 40U | mark);
}
/// The place is LOST no more: a later loss there is another one, though its round may look the same.
template <class Side>
CAROUSEL_SIDE void count_done(typename Side::word& tally) {
    const u64 before = Side::load(tally);
    (void)Side::cas(tally, before, before >> 40U << 40U);
}

}  // namespace carousel::ipc
