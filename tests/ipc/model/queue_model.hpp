#pragma once
// The queue of ipc/queue.cpp, one step for each load and each CAS of its words; a payload is written and read
// in two halves. Doorbells and time are left out: a process that can make a step eventually makes it. An
// incarnation below `producers` pushes, the others consume.

#include "incarnations.hpp"

namespace carousel::ipc_model {

struct queue_setup : setting {
    u8 capacity = 2, producers = 1;
    u8 elements = 2;   ///< of each producer
    bool pops = true;  ///< consumers pop, else they lease and commit
    u8 requeues = 0;   ///< of all together
    u8 rounds = 4;     ///< a tally's mark distinguishes N laps

    // The rules of the code; each `false` is a seeded bug.
    bool writes_first = true;                        ///< the payload is written before the cell is published
    bool reads_first = true;                         ///< and read before the cell is freed
    bool claim_checked = true, take_checked = true;  ///< by CAS
    bool claim_named = true;                         ///< a claim contains its epoch
    bool waits_for_claimed = true;                   ///< a consumer doesn't pass by a cell that is claimed
    bool lap_compared = true;                        ///< a producer checks whether the cell is of its lap
    bool repairs_claimed = true, repairs_popping = true, repairs_leased = true;
    bool tombs_advance = true;   ///< to the next lap
    bool counted_once = true;    ///< a loss that is marked and counted is not counted again
    bool tombs_first = true;     ///< a repair starts with the marks of an earlier repair
    bool marks_cleared = true;   ///< and then clears the marks of the tallies
    bool popped_is_lost = true;  ///< what a dead one was popping is not delivered again
};

result explore(const queue_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
