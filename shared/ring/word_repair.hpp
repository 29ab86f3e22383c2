#pragma once
// Words that are damaged by one bit, and what they must have been. Evidence is what the supervisor knows by
// itself (END, seats, processes, sets) and the protocol's rules over all other words: of the 64 values that
// are one bit from what is found, those are left which no rule speaks against. If all that are left mean the
// same, that is written back; else nobody can tell, and the block is made anew.
//
// Who may call: the supervisor's thread alone, at two looks at least: a value that follows from both, word
// for word, is no sight of a frame that moved between two reads. write_back is one CAS of the damaged value:
// cut off before, the next look or the next supervisor finds the same.
//
// Not told: which of several words is wrong when several are; a change of an even number of bits (parity does
// not show it, the audit's rules may); headers, which only their producer can write.

#include <optional>
#include <vector>

#include "ring/authoritative_words.hpp"
#include "ring/block_check.hpp"

namespace carousel::ring {

struct damaged_word {
    word_place at;
    u64 raw = 0;
    bool operator==(const damaged_word&) const = default;
};

/// At most most_findings of them. Sequences in headers count where a frame is READY.
[[nodiscard]] std::vector<damaged_word> damaged_words(const shm::control_block& c,
                                                      const shm::control_block& made);
/// What the word was, or the same in another spelling. Empty: nobody can tell, at this look.
[[nodiscard]] std::optional<u64> repaired_value(const shm::control_block& c, const shm::control_block& made,
                                                const known_run& known, const damaged_word& w);
/// Writes it back and wakes whoever waits. False: the word has changed since.
bool write_back(shm::control_block& c, const shm::control_block& made, const damaged_word& w,
                u64 value) noexcept;

}  // namespace carousel::ring
