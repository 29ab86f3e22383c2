#pragma once
// The small model of the parameters: which set a number has. Two source instances lease numbers in any order,
// query in steps of one read or one CAS, and die anywhere; their numbers are leased again. A supervisor
// publishes changes, its filling one step apart from its CAS, and dies anywhere before its CAS; the next one
// knows only the box. Few sets and few numbers; the count of sets wraps around.
//
// Left out: a revoked source that continues to read (its frame is discarded in any case), weak memory
// (ring/parameter_box.hpp argues the orders).

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct parameter_setup {
    bool move_horizon = true;  ///< a source moves the horizon past its number before it chooses a set
    bool one_cas = true;     ///< a change is applied by a CAS on {sets, horizon}; otherwise on only the sets,
                             ///< with the horizon read before
    bool check_room = true;  ///< a set that the oldest frame may need is not filled again
    int deaths = 1, supervisor_deaths = 1;
    int changes = 4;  ///< as many as there are slots for sets: each slot is filled again
    int numbers = 3;
};

struct parameter_result {
    u64 states = 0;
    bool differs = false;  ///< one number has been given two sets
    bool falls = false;    ///< a number has an older set than one below it
    /// a number below publish()'s result has the change, or one from there on does not have it
    bool inexact = false;
    bool torn = false;     ///< a source reads a set that is being filled
    bool refused = false;  ///< at least once there was no room for a change (not an error)
    bool round = false;    ///< at least once the count of sets has wrapped around
    std::vector<std::string> trace;
    [[nodiscard]] bool sound() const { return !differs && !falls && !inexact && !torn; }
};

parameter_result explore_parameters(const parameter_setup& s);

}  // namespace carousel::model
