#pragma once
// The queue's steps. The CPU and kernels use the same code, so the tests that use histories or the model, all
// of which run on the CPU, also check the code that runs on a GPU. queue.hpp describes the words, what a
// crash leaves at each step, and the memory order, which are the same for both.
//
// The class Side provides the words and their operations:
//   word                              a word in the memory of that side
//   load(word), cas(word, from, to)   acquire; acq_rel, acquire on failure
//   at(step)                          a named step is passed
//
// Every loop has a bound, because kernels need one; if the bound is reached, the queue is reported as full or
// empty.

#include "ipc/owner_word.hpp"
#include "ipc/steps.hpp"

namespace carousel::ipc {

enum class cell_state : u8 { free, claimed, ready, popping, leased, tomb, lost };
using cell_word = owner_word<cell_state>;

/// The addresses of a queue's parts in this process.
template <class Word>
struct queue_parts {
    using word = Word;
    word* cell = nullptr;
    u8* elements = nullptr;
    word *head = nullptr, *tail = nullptr;   ///< hints
    word *lost = nullptr, *tombs = nullptr;  ///< tallies
    u32 capacity = 0, element_bytes = 0;
};
/// Size in bytes of an element, rounded up to whole words.
[[nodiscard]] CAROUSEL_HD constexpr u64 element_stride(u32 bytes) { return (u64{bytes} + 7) / 8 * 8; }

template <class Side>
class queue_body {
public:
    using word = typename Side::word;
    CAROUSEL_HD queue_body(const queue_parts<word>& p, u32 epoch) : p_(p), epoch_(epoch) {}

    /// FREE -> CLAIMED. Returns false if the queue is full.
    [[nodiscard]] CAROUSEL_SIDE bool claim(u64& ticket) const;
    /// CLAIMED -> READY. Called after the element is written.
    CAROUSEL_SIDE bool publish(u64 ticket) const;
    /// READY -> POPPING or LEASED. Returns false if the queue is empty, or if the first cell is claimed and
    /// not published.
    [[nodiscard]] CAROUSEL_SIDE bool take(cell_state as, u64& ticket) const;
    /// POPPING or LEASED -> FREE(lap + 1). Returns false if the cell does not belong to this client (any
    /// more).
    CAROUSEL_SIDE bool consume(u64 ticket, cell_state from) const;
    /// LEASED -> READY.
    CAROUSEL_SIDE bool requeue(u64 ticket) const;
    [[nodiscard]] CAROUSEL_SIDE u8* element(u64 ticket) const {
        return p_.elements + ticket % p_.capacity * element_stride(p_.element_bytes);
    }

    // ---- repair after the fence of `dead`: only one repair runs at a time; it may be interrupted and
    // restarted anywhere. First settle_marked is called for each cell, then settle_done, then repair_cell for
    // each cell.
    CAROUSEL_SIDE void settle_marked(u32 k) const;
    CAROUSEL_SIDE void settle_done() const;
    CAROUSEL_SIDE void repair_cell(u32 k, u32 dead) const;

private:
    CAROUSEL_SIDE static void hint(word& at_word, u64 seen, u64 next) {
        (void)Side::cas(at_word, seen, next);
    }
    [[nodiscard]] CAROUSEL_SIDE word& cell(u64 ticket) const { return p_.cell[ticket % p_.capacity]; }
    [[nodiscard]] CAROUSEL_SIDE u64 lap(u64 ticket) const { return (ticket / p_.capacity) & count_mask; }
    [[nodiscard]] CAROUSEL_SIDE cell_word claimed(u64 in_lap) const {
#ifndef CAROUSEL_BUG_CLAIMS_UNNAMED
        return {in_lap, epoch_, cell_state::claimed};
#else
        return {in_lap, 0, cell_state::claimed};
#endif
    }
    CAROUSEL_SIDE void bury(u32 k, cell_word w, cell_state into, word& tally) const;
    queue_parts<word> p_;
    u32 epoch_;
};

// Lock-free: a CAS fails only if another client has claimed the cell or has moved the hint.
template <class Side>
CAROUSEL_SIDE bool queue_body<Side>::claim(u64& ticket) const {
    ticket = Side::load(*p_.tail);
    for (u64 attempt = 0; attempt < 4 * u64{p_.capacity}; ++attempt) {
        const cell_word here = cell_word::of(Side::load(cell(ticket)));
        const int round = round_of(here.count, lap(ticket));
        if (round < 0) return false;  // full: the cell still has the element of the previous lap
        if (round == 0 && here.state == cell_state::free) {
            if (!Side::cas(cell(ticket), here.pack(), claimed(here.count).pack())) continue;
            hint(*p_.tail, ticket, ticket + 1);
            Side::at(step::cell_claimed);
            return true;
        }
        hint(*p_.tail, ticket, ticket + 1);
        const u64 tail = Side::load(*p_.tail);
        ticket = tail > ticket ? tail : ticket + 1;
    }
    return false;
}

template <class Side>
CAROUSEL_SIDE bool queue_body<Side>::publish(u64 ticket) const {
    const cell_word mine = claimed(lap(ticket));
    return Side::cas(cell(ticket), mine.pack(), cell_word{mine.count, 0, cell_state::ready}.pack());
}

template <class Side>
CAROUSEL_SIDE bool queue_body<Side>::take(cell_state as, u64& ticket) const {
    ticket = Side::load(*p_.head);
    u64 first = ticket;  // all cells before this one have been skipped
    // If the CAS fails, another client has taken the cell. The hint may be several laps old, because the
    // cells of dead producers are freed without a consumer.
    u64 failed = 0;
    while (ticket < first + p_.capacity && failed <= p_.capacity) {
        const cell_word here = cell_word::of(Side::load(cell(ticket)));
        const int round = round_of(here.count, lap(ticket));
        if (round < 0) return false;
        if (round == 0) {
            if (here.state == cell_state::free) return false;
#ifndef CAROUSEL_BUG_PASSES_CLAIMED
            if (here.state == cell_state::claimed) return false;
#endif
            if (here.state == cell_state::ready) {
                const cell_word mine{here.count, epoch_, as};
#ifndef CAROUSEL_BUG_POPS_UNCHECKED
                if (!Side::cas(cell(ticket), here.pack(), mine.pack())) {
                    ++failed;
                    continue;  // another client has taken the cell: check it again
                }
#else
                Side::at(step::cell_passed);
                cell(ticket).store(mine.pack());  // seeded bug: two clients may have the cell
#endif
                Side::at(as == cell_state::leased ? step::cell_leased : step::cell_popping);
                return true;
            }
        } else if (ticket == first) {
            hint(*p_.head, ticket, ticket + 1);
            ++first;
        }
        Side::at(step::cell_passed);
        ++ticket;
    }
    return false;
}

template <class Side>
CAROUSEL_SIDE bool queue_body<Side>::consume(u64 ticket, cell_state from) const {
    const cell_word mine{lap(ticket), epoch_, from};
    const cell_word next{mine.count + 1, 0, cell_state::free};
    if (!Side::cas(cell(ticket), mine.pack(), next.pack())) return false;
    Side::at(step::cell_consumed);
    return true;
}

template <class Side>
CAROUSEL_SIDE bool queue_body<Side>::requeue(u64 ticket) const {
    const cell_word mine{lap(ticket), epoch_, cell_state::leased};
    const cell_word next{mine.count, 0, cell_state::ready};
    if (!Side::cas(cell(ticket), mine.pack(), next.pack())) return false;
    Side::at(step::cell_returned);
    return true;
}

// Moves a cell that a dead client has left to the next lap, and counts it once.
template <class Side>
CAROUSEL_SIDE void queue_body<Side>::bury(u32 k, cell_word w, cell_state into, word& tally) const {
    if (w.state != into) {
        const cell_word marked{w.count, 0, into};
        if (!Side::cas(p_.cell[k], w.pack(), marked.pack())) return;
        w = marked;
        Side::at(step::loss_marked);
    }
#ifndef CAROUSEL_BUG_COUNTS_TWICE
    count_once<Side>(tally, k, w.count);
#else
    (void)Side::cas(tally, Side::load(tally), Side::load(tally) + (u64{1} << 40U));  // seeded bug
#endif
    Side::at(step::loss_counted);
    (void)Side::cas(p_.cell[k], w.pack(), cell_word{w.count + 1, 0, cell_state::free}.pack());
    Side::at(step::word_repaired);
    count_done<Side>(tally);
}

// If an interrupted repair has left a marked cell (of any client), this repair completes that cell first,
// because a tally records only the last counted cell. A repair marks one cell at a time, so there is at most
// one marked cell.
template <class Side>
CAROUSEL_SIDE void queue_body<Side>::settle_marked(u32 k) const {
    const cell_word w = cell_word::of(Side::load(p_.cell[k]));
    if (w.state == cell_state::tomb) bury(k, w, cell_state::tomb, *p_.tombs);
    if (w.state == cell_state::lost) bury(k, w, cell_state::lost, *p_.lost);
}

// Called after settle_marked for all cells. The tallies no longer need to record the last counted cell.
template <class Side>
CAROUSEL_SIDE void queue_body<Side>::settle_done() const {
    count_done<Side>(*p_.tombs);
    count_done<Side>(*p_.lost);
}

template <class Side>
CAROUSEL_SIDE void queue_body<Side>::repair_cell(u32 k, u32 dead) const {
    const cell_word w = cell_word::of(Side::load(p_.cell[k]));
    if (w.epoch != dead) return;
#ifndef CAROUSEL_BUG_KEEPS_CLAIMED
    if (w.state == cell_state::claimed) bury(k, w, cell_state::tomb, *p_.tombs);
#endif
#ifndef CAROUSEL_BUG_REDELIVERS_POPPED
    if (w.state == cell_state::popping) bury(k, w, cell_state::lost, *p_.lost);
#else
    if (w.state == cell_state::popping)
        (void)Side::cas(p_.cell[k], w.pack(), cell_word{w.count, 0, cell_state::ready}.pack());
#endif
    if (w.state != cell_state::leased) return;
#ifndef CAROUSEL_BUG_LOSES_LEASED
    (void)Side::cas(p_.cell[k], w.pack(), cell_word{w.count, 0, cell_state::ready}.pack());
#else
    (void)Side::cas(p_.cell[k], w.pack(), cell_word{w.count + 1, 0, cell_state::free}.pack());
#endif
    Side::at(step::word_repaired);
}

}  // namespace carousel::ipc
