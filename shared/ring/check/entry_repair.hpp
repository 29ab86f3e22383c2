#pragma once
// Determines the identity of an entry that was damaged by one bit while there was no supervisor. The
// supervisor that takes the run over has no record of its own about the processes. It has the other words,
// the records of its predecessor, and the processes that exist.
//
// Of the identities that are one bit away, the one with the most evidence is chosen. Evidence is: a seat that
// names the entry with that epoch; a live process of the run with that pid and with the start time in the
// entry; the same identity in the file. The state is not derived from the word's bits, but from the entry
// that holds a seat and from the processes that are alive, as far as a second supervisor needs to know it. A
// process that still works either holds its seat or must be retired; an entry that no process has claimed and
// that no job word depends on is UNUSED.
//
// Called by a supervisor that takes a run over, before it searches for its processes. Nothing is changed
// here.

#include <functional>
#include <optional>
#include <vector>

#include "ring/check/block_check.hpp"

namespace carousel::ring {

struct entry_evidence {
    std::vector<known_process> recorded;  ///< from the predecessor's file, which may be older than the last
                                          ///< event
    std::function<bool(u32 pid)>
        is_ours;  ///< a process of this run with that pid is alive and has the start time in the entry
};

/// Returns the value that the entry's word should have; empty if its identity cannot be determined.
[[nodiscard]] std::optional<u64> adopted_entry(const shm::control_block& c, u32 entry,
                                               const entry_evidence& evidence);

}  // namespace carousel::ring
