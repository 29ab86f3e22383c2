#pragma once
// Words that are damaged by one bit, and what they must have been. Evidence is what the supervisor knows by
// itself (END, seats, processes, sets) and the protocol's rules over all other words: of the 64 values that
// are one bit away from the value found, those that violate no rule are left. If all that are left have the
// same meaning, one of them is written back; else the value cannot be determined, and the block is rebuilt.
//
// Caller: the supervisor's thread only, after at least two checks: a value that is the same at both, word for
// word, is not the effect of a frame that moved between two reads. write_back() is one CAS of the damaged
// value: if the supervisor dies before it, the next check or the next supervisor finds the same.
//
// Not handled: which word is wrong when several are damaged; a change of an even number of bits (parity does
// not show it, the audit's rules may); headers, which only their producer can write.

#include <optional>
#include <vector>

#include "ring/check/authoritative_words.hpp"
#include "ring/check/block_check.hpp"

namespace carousel::ring {

struct damaged_word {
    word_place at;
    u64 raw = 0;
    bool operator==(const damaged_word&) const = default;
};

/// The damaged words, at most most_findings. A sequence in a header counts only if the frame is READY.
[[nodiscard]] std::vector<damaged_word> damaged_words(const shm::control_block& c,
                                                      const shm::control_block& made);
/// The value that the word had, or one with the same meaning. Empty: it cannot be determined at this check.
[[nodiscard]] std::optional<u64> repaired_value(const shm::control_block& c, const shm::control_block& made,
                                                const known_run& known, const damaged_word& w);
/// Writes the value back and wakes all stages. False: the word has changed since.
bool write_back(shm::control_block& c, const shm::control_block& made, const damaged_word& w,
                u64 value) noexcept;

}  // namespace carousel::ring
