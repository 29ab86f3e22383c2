#pragma once
// Identifies an entry that was damaged by one bit while no supervisor lived. The supervisor that takes the
// run over does not know its processes by itself. It has the other words, what its predecessor has recorded,
// and the processes that exist.
//
// Of the identities that are one bit away, the one with the most evidence is right: a seat names the entry
// with that epoch; a process of the run with that pid lives and began when the entry states; the file records
// the same. The state is not derived from the word's bits: it follows from which entry holds a seat and which
// process lives, as far as a second supervisor has to know it. A process that still works holds its seat or
// is to be retired; an entry that no process has claimed and that no job word depends on is UNUSED.
//
// Caller: a supervisor that takes a run over, before it searches for its processes. Nothing is changed here.

#include <functional>
#include <optional>
#include <vector>

#include "ring/check/block_check.hpp"

namespace carousel::ring {

struct entry_evidence {
    std::vector<known_process> recorded;  ///< from the predecessor's file, which may be one event old
    std::function<bool(u32 pid)>
        is_ours;  ///< a process of this run with that pid lives, and started when the entry states
};

/// The value that the entry's word should have; empty if its identity cannot be determined.
[[nodiscard]] std::optional<u64> adopted_entry(const shm::control_block& c, u32 entry,
                                               const entry_evidence& evidence);

}  // namespace carousel::ring
