#pragma once
// Finds words that are damaged by one bit, and their original values. The evidence consists of the
// supervisor's own data (END, seats, processes, sets) and the protocol's rules over all other words: of the
// 64 values that are one bit away from the value found, those that violate no rule remain. If all remaining
// values have the same meaning, one of them is written back; otherwise the value cannot be determined, and
// the block is rebuilt.
//
// Called only by the supervisor's thread, after at least two checks: a value that both checks find is not the
// effect of a frame that advanced between two reads. write_back() is one CAS of the damaged value: if the
// supervisor dies before it, the next check or the next supervisor finds the same value.
//
// Not handled: several damaged words at the same time; a change of an even number of bits (parity does not
// detect it, but the audit's rules may); headers, which only their producer can write.

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

/// Returns the damaged words, at most most_findings. A sequence in a header counts only if the frame is
/// READY.
[[nodiscard]] std::vector<damaged_word> damaged_words(const shm::control_block& c,
                                                      const shm::control_block& made);
/// Returns the value that the word had, or a value with the same meaning. Empty if it cannot be determined at
/// this check.
[[nodiscard]] std::optional<u64> repaired_value(const shm::control_block& c, const shm::control_block& made,
                                                const known_run& known, const damaged_word& w);
/// Writes the value back and wakes all stages. Returns false if the word has changed since then.
bool write_back(shm::control_block& c, const shm::control_block& made, const damaged_word& w,
                u64 value) noexcept;

}  // namespace carousel::ring
