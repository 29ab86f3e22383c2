#pragma once
// Finds the damaged parts of a control block and determines their original values.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ring/check/block_check.hpp"

namespace carousel::ring {

// Finds words that are damaged by one bit, and their original values. The evidence consists of the
// supervisor's own data (END, seats, processes, sets) and the protocol's rules over all other words. Of the
// 64 values that differ in one bit from the value found, the ones that violate no rule are kept. If all kept
// values have the same meaning, one of them is written back. If their meanings differ, the value cannot be
// determined, and the block is rebuilt.
// Called only by the supervisor's thread, after at least two checks, because a value that both checks find is
// not the effect of a frame that advanced between two reads. write_back() is one CAS of the damaged value: if
// the supervisor dies before the CAS, the next check or the next supervisor finds the same value.
// Not handled: several words that are damaged at the same time; a word in which an even number of bits has
// changed (parity does not detect such a change, but the audit's rules may detect it); headers, because only
// their producer can write them.

struct damaged_word {
    word_place at;
    u64 raw = 0;
    bool operator==(const damaged_word&) const = default;
};

/// Returns the damaged words, at most most_findings. The sequence in a header is checked only if the header's
/// slot is READY.
[[nodiscard]] std::vector<damaged_word> damaged_words(const shm::control_block& c,
                                                      const shm::control_block& made);
/// Returns the value that the word had, or a value with the same meaning. Empty if it cannot be determined at
/// this check.
[[nodiscard]] std::optional<u64> repaired_value(const shm::control_block& c, const shm::control_block& made,
                                                const known_run& known, const damaged_word& w);
/// Writes the value back and wakes all stages. Returns false if the word has changed since the check.
bool write_back(shm::control_block& c, const shm::control_block& made, const damaged_word& w,
                u64 value) noexcept;

// Determines the identity of an entry that was damaged by one bit while there was no supervisor. The
// supervisor that takes the run over has no record of its own about the processes. It has only the other
// words, the records of its predecessor, and the processes that exist. Of the identities that differ in one
// bit from the one found, the identity with the most evidence is chosen. Evidence is: a seat that names the
// entry with that epoch; a live process of the run with that pid and with the start time in the entry; the
// same identity in the file. The state is not derived from the word's bits. A second supervisor derives the
// state that it needs from two facts: which entry holds a seat, and which processes are alive. A process that
// still works either holds its seat or must be retired; an entry that no process has claimed and that no job
// word depends on is UNUSED. Called by a supervisor that takes a run over, before it searches for its
// processes. Nothing is changed here.

struct entry_evidence {
    /// the processes in the predecessor's file, which may be older than the last event
    std::vector<known_process> recorded;
    /// true if a process of this run with that pid is alive and has the entry's start time
    std::function<bool(u32 pid)> is_ours;
};

/// Returns the value that the entry's word should have; empty if its identity cannot be determined.
[[nodiscard]] std::optional<u64> adopted_entry(const shm::control_block& c, u32 entry,
                                               const entry_evidence& evidence);

// Repairs parts of a control block that are written once and that no process acts on: names and figures for
// display, descriptions of memory that are also sent by message, and parameter sets that no frame can need.
// Also repairs, from the supervisor's own data, the words that record whether a seat is paused and when a
// process started. The supervisor's copy is authoritative, so these parts are written back in place,
// regardless of how many bits have changed. Data that a process may have acted on in the meantime (a count, a
// window, a flag, the set of a frame that can still be made) is not repaired here: check_static() reports it,
// and the block is rebuilt.
// Called only by the supervisor's thread, at any time. The data is plain bytes that no other process writes:
// a concurrent reader reads each byte with its old or its new value. If the repair is interrupted between two
// bytes, the next check finds the remaining ones.

/// Writes back the parts that differ from `made` and that no process acts on. Returns the names of the words
/// that were wrong. A source searches the sets from the newest one backwards, at most to the set that applies
/// to the oldest frame that can still be made; `known.tails` determines that frame.
[[nodiscard]] std::vector<std::string> repair_static(shm::control_block& c, const shm::control_block& made,
                                                     const known_run& known);

/// Writes back the start times that `known` contains for processes that are ready. The word of a start time
/// belongs to the process, which writes the word once, before the process is ready. Returns the names of the
/// words that were wrong.
[[nodiscard]] std::vector<std::string> repair_start_times(shm::control_block& c,
                                                          const shm::control_block& made,
                                                          const known_run& known);

/// The number of sets, from the newest one back, that a source can read when it makes frame `oldest` or a
/// later frame.
[[nodiscard]] u32 sets_in_use(const shm::parameter_box& made, u64 oldest) noexcept;

}  // namespace carousel::ring
