#pragma once
// The small model of a stage with state: its ring of states, the only output ring of that stage. State n is
// computed by the device from state n - 1 and frame n, and is committed by the same word as frame n.
//
// One seat with two incarnations (a successor works while its predecessor's device may still write), frames
// in flight, a consumer, a supervisor whose steps are one word each, deaths at any step, frames that become
// tombstones, and rebuilds that keep the memory. The content of a state is the set of frames that it
// contains, so that a state which was computed from a wrong, a torn or a lost one differs.
//
// Left out: several outputs (setups_outputs.cpp), weak memory, and attempts with several frames in flight
// (rules_lease.cpp).

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct state_setup {
    int frames = 3, in_flight = 2, slots = 4, deaths = 1, rebuilds = 0;
    bool tombstone = false;  ///< a frame that was begun twice becomes a tombstone, which copies the state
    bool damage = false;     ///< at a rebuild, one header may be damaged

    // The rules. A model without one of them shows what goes wrong.
    bool owner_commits = true;       ///< otherwise a consumer may commit, in any order
    bool commits_in_order = true;    ///< the owner commits n before n + 1
    bool begins_in_order = true;     ///< n begins when n - 1 is READY or in flight in the same incarnation
    bool waits_for_previous = true;  ///< the work on n waits for the event of n - 1
    bool writes_in_process = true;   ///< otherwise in finish(), after the event
    bool keeps_at_tail = true;       ///< the state just below the tail is not freed
    bool keeps_newest = true;        ///< without that: the newest READY state is not freed
    bool frees_after_fence = true;
    bool copies_at_tombstone = true;
    // A rebuild takes a state if its status word has the number of its header, and its epoch, ...
    bool checks_status = true, checks_status_epoch = true;
    bool takes_chain = true;       ///< ... if its header has the epoch of the state that is taken before it,
    bool takes_delivered = true;   ///< and, below the tail, only the state that was delivered,
    bool takes_unbroken = true;    ///< from the tail on as far as none is missing,
    bool takes_below_tail = true;  ///< beginning with the state just below the tail.
};

struct state_result {
    u64 states = 0;
    bool wrong = false;  ///< a state was delivered that differs from that of a run without faults
    bool lost = false;   ///< the state that a frame needs is gone, without damage to it
    bool stuck = false;  ///< a state of the model from which not every frame can be delivered
    std::vector<std::string> trace;
    [[nodiscard]] bool sound() const { return !wrong && !lost && !stuck; }
};

state_result explore_states(const state_setup& s);

}  // namespace carousel::model
