#pragma once
// The small model of a seat: which process may take it. A supervisor checks, raises the epoch, spawns, and
// may die anywhere; a second supervisor has no memory and finds only the control block. The successor's first
// step is the CAS that claims the seat for its epoch.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct seat_setup {
    bool claim_first = true;  ///< a spawned process works only after its CAS on the seat
    bool raise_epoch = true;  ///< the epoch is raised before a successor is spawned
    bool standby = false;  ///< one process waits as a standby from the start, and a supervisor may promote it
    /// a promotion names the standby in the seat before the standby's entry has the epoch
    bool seat_first = true;
    int deaths = 2, supervisor_deaths = 2;
};

struct seat_result {
    u64 states = 0;
    bool two_workers = false;   ///< two processes work under one epoch
    bool shared_epoch = false;  ///< two entries have one epoch: their events could be mixed up
    bool no_process = false;    ///< a state in which no process will ever take the seat again
    std::vector<std::string> trace;
};

seat_result explore_seat(const seat_setup& s);

}  // namespace carousel::model
