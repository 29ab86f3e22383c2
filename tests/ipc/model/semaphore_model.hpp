#pragma once
// The semaphore of ipc/semaphore.cpp, one step for each load and each CAS of its words. Doorbells are left
// out: a process that can make a step eventually makes it. Time is left out as well: a wait may time out at
// any moment, and so may the patience with the first of the line, where it can be late; it is always over for
// one that has stopped or died.

#include "incarnations.hpp"

namespace carousel::ipc_model {

struct semaphore_setup : setting {
    u8 permits = 1, line = 4;
    u8 rounds = 1;     ///< each incarnation takes and releases a permit this many times
    u8 time_outs = 0;  ///< of all together
    u8 late = 0;       ///< how often one that runs is passed by

    // The rules of the code; a rule that is `false` is a seeded bug.
    bool in_order = true;           ///< a client with more earlier ones than free permits waits
    bool line_first = true;         ///< those in front are counted before the free permits
    bool checked = true;            ///< a permit is taken by CAS
    bool leaves_after_take = true;  ///< a ticket leaves the queue after the permit's CAS, not before it
    bool next_lap = true;           ///< leaving the line moves its place on to the next lap
    bool lap_compared = true;       ///< a place of another lap is not taken
    bool repairs_permits = true, repairs_tickets = true;
    bool passes_late = true;  ///< the first of the line is skipped if it leaves a free permit unused
};

result explore(const semaphore_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
