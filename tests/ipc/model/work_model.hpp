#pragma once
// The work queue of ipc/work_queue.cpp, one step for each load and each CAS of its words; a task is written
// and read in two halves. An incarnation below `submitters` submits, the others claim, and take dead letters
// if requested.

#include "incarnations.hpp"

namespace carousel::ipc_model {

struct work_setup : setting {
    u8 places = 2, submitters = 1;
    u8 tasks = 2;  ///< of each submitter
    u8 max_attempts = 2;
    u8 fails = 0;  ///< of all together
    u8 again = 0;  ///< how often a commit is repeated, later on
    bool reads_dead_letters = false;

    // The rules of the code; each `false` is a seeded bug.
    bool writes_first = true;                        ///< the task is written before it can be claimed
    bool reads_first = true;                         ///< and read before its place is free
    bool fill_checked = true, claim_checked = true;  ///< by CAS
    bool claim_named = true;                         ///< a claim contains its epoch
    bool next_generation = true;                     ///< freeing a place moves it on
    bool attempts_counted = true;
    bool dead_letters_made = true;     ///< at max_attempts
    bool dead_letters_in_time = true;  ///< and not before
    bool repairs_filling = true, repairs_claimed = true, repairs_reading = true;
    bool claimed_redelivered = true;      ///< a dead one's claim is not taken for done
    bool dead_letter_redelivered = true;  ///< nor the dead letter that it was reading
};

result explore(const work_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
