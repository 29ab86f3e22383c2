#pragma once
// Who mends words in GPU memory (ipc/gpu_repair.cpp, pipelines/alloc/repair.cpp): the holder starts a process
// for it, which may die or stop anywhere, and so may the holder; the next one finds what was left. One step
// for each load, store and CAS of words in shared memory, and for each thing that one process does to
// another.
//
// The words are cells, which a life claims and frees, and one tally: queue_model.hpp has the rest of a queue.
// A killed mender may make further steps before it has ended. A pid comes into use again at once, for another
// mender or for a stranger. Nobody relies on a mender's ending with its holder but for what its socket tells
// it.

#include "incarnations.hpp"

namespace carousel::ipc_model {

struct repairer_setup : setting {
    u8 cells = 2, rounds = 1;  ///< rounds: cells that each life claims and frees
    u8 repairer_deaths = 0, repairer_stops = 0, other_processes = 0;
    u8 impatience = 0;  ///< menders that run, and are killed for being slow

    // The rules of the code; each `false` is a seeded bug.
    bool one_at_a_time = true;          ///< a holder starts the next one behind the end of its last
    bool checks_for_another = true;     ///< it looks for one that a holder before it has started
    bool ends_another = true;           ///< kills it
    bool waits_for_exit = true;         ///< and starts its own behind that one's end
    bool start_compared = true;         ///< a process with the same pid and another start time is another one
    bool named_before_notified = true;  ///< its process stands in the space before it is told to begin
    bool orders_repeated = true;   ///< lives whose mender has died without a word are told to the next one
    bool finds_fenced = true;      ///< a new holder mends what it finds FENCED
    bool has_timeout = true;       ///< which ends: one that hangs is killed
    bool exit_is_not_done = true;  ///< one that has ended without a word has not mended
    bool reports_after_last_change = true;  ///< a mender says that it is done behind its last change
    bool ends_with_socket = true;           ///< one that has heard nothing ends with its holder
    bool marked_first = true;               ///< a mend begins with what another mend has marked
    bool counted_once = true;
};

result explore(const repairer_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
