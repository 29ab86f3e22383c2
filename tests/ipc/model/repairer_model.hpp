#pragma once
// The process that repairs words in GPU memory (ipc/gpu_repair.cpp, pipelines/alloc/repair.cpp): the holder
// starts it, it may die or stop anywhere, and so may the holder; the next one finds what was left. One step
// for each load, store and CAS of words in shared memory, and for each action of one process on another. The
// words are cells, which an incarnation claims and frees, and one tally: queue_model.hpp has the rest of a
// queue. A killed repairer may make further steps before it has ended. A pid may be reused at once, for
// another repairer or an unrelated process. A repairer's end with its holder is known only through its
// socket.

#include "incarnations.hpp"

namespace carousel::ipc_model {

struct repairer_setup : setting {
    u8 cells = 2, rounds = 1;  ///< rounds: cells that each incarnation claims and frees
    u8 repairer_deaths = 0, repairer_stops = 0, other_processes = 0;
    u8 impatience = 0;  ///< repairers that run, and are killed for being slow

    // The rules of the code; each `false` is a seeded bug.
    bool one_at_a_time = true;          ///< a holder starts the next one after the end of its last
    bool checks_for_another = true;     ///< it searches for one that an earlier holder has started
    bool ends_another = true;           ///< kills it
    bool waits_for_exit = true;         ///< and starts its own after the end of that one
    bool start_compared = true;         ///< a process with the same pid and another start time is another one
    bool named_before_notified = true;  ///< its process is in the space before it is requested to start
    bool orders_repeated = true;   ///< incarnations whose repairer died without a reply are passed to the
                                   ///< next one
    bool finds_fenced = true;      ///< a new holder repairs what it finds FENCED
    bool has_timeout = true;       ///< which ends: one that hangs is killed
    bool exit_is_not_done = true;  ///< a repairer that ended without a reply has not repaired
    bool reports_after_last_change = true;  ///< a repairer reports the end after its last change
    bool ends_with_socket = true;           ///< one that has received nothing ends with its holder
    bool marked_first = true;               ///< a repair starts with the marks of an earlier repair
    bool counted_once = true;
};

result explore(const repairer_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
