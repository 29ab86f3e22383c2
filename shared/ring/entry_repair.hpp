#pragma once
// An entry that was damaged by one bit while no supervisor lived: whose it is. The one who takes the run over
// does not know its processes by itself. It has the other words, what its predecessor has written down, and
// the processes that are there.
//
// Of the values that are one bit away, that identity is right for which most speaks: a seat names the entry
// with that epoch; a process of the run with that pid lives, which began when the entry says; the file tells
// the same. The state is not read off the bits: it follows from who sits and who lives, as far as a second
// supervisor has to know it. Whoever still works is to be retired, or sits; an entry that nobody has claimed,
// and that no job word rests on, is nobody's.
//
// Who may call: a supervisor that takes a run over, before it looks for its processes. Nothing is changed
// here.

#include <functional>
#include <optional>
#include <vector>

#include "ring/block_check.hpp"

namespace carousel::ring {

struct entry_evidence {
    std::vector<known_process> recorded;  ///< by the predecessor's file, which may be one event old
    std::function<bool(u32 pid)>
        is_ours;  ///< a process of this run with that pid lives, as old as the entry says
};

/// What the entry's word is to be; empty: nobody can tell whose it is.
[[nodiscard]] std::optional<u64> adopted_entry(const shm::control_block& c, u32 entry,
                                               const entry_evidence& evidence);

}  // namespace carousel::ring
