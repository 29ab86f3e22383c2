#pragma once
// A run of the ring's own objects. Bits of its words are flipped one at a time; a test checks what the repair
// makes of each.

#include <optional>

#include "ring/check/repair.hpp"
#include "seated.hpp"

namespace carousel::test {

/// source -> middle -> sink, or another plan, with a copy of the block as it was created.
struct run_in_hand {
    shm::private_block made = shm::make_private_block();
    bench b;
    ring::known_run known;

    explicit run_in_hand(const ring::plan& p = chain_of_three()) : b(p) {
        shm::copy_words(*made, *b.c);
        known.end = ring::end_unknown;
        known.epochs.resize(made->seats);
    }
    seated sit(u32 seat) {
        seated s = b.sit(seat);
        known.epochs[seat] = s.incarnation.epoch;
        known.processes.push_back(
            {seat, s.incarnation.entry, s.incarnation.epoch,
             ring::entry_word::of(ring::load(b.c->entry[s.incarnation.entry].identity)).pid, true, false});
        return s;
    }
    /// Flips the bit; returns the value that the repair determines, if any.
    std::optional<u64> flip(shm::word& at, unsigned bit) const {
        at.fetch_xor(u64{1} << bit);
        const auto damaged = ring::damaged_words(*b.c, *made);
        REQUIRE(damaged.size() == 1);
        return ring::repaired_value(*b.c, *made, known, damaged.front());
    }
    void write_back(u64 value) const {
        REQUIRE(ring::write_back(*b.c, *made, ring::damaged_words(*b.c, *made).front(), value));
        REQUIRE(ring::damaged_words(*b.c, *made).empty());
    }
};

}  // namespace carousel::test
