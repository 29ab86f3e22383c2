#pragma once
// The pool of ipc/pool.cpp and the gifts of ipc/pool.cpp, one step for each load and each CAS of their words.
// The queue of the gifts has one cell, and its own rules are queue_model.hpp's. Bells and time are left out.

#include "incarnations.hpp"

namespace carousel::ipc_model {

enum class pool_role : u8 { user, giver, receiver };

struct pool_setup : setting {
    u8 units = 3;
    std::array<pool_role, max_incarnations> role{};
    std::array<u8, max_incarnations> size{1, 1, 1};  ///< units of an incarnation's blocks
    u8 rounds = 1;                                   ///< blocks that each user and giver takes
    bool one_process = false;                        ///< the incarnations are threads of one: they share an
                                                     ///< epoch

    // The rules of the code; each `false` is a seeded bug.
    bool first_checked = true, body_checked = true;  ///< units are claimed by CAS
    bool first_claimed_first = true;                 ///< the first unit of a block before the others
    bool first_freed_last = true;                    ///< and freed after them
    bool freed_downwards = true;                     ///< the others, the last one first
    bool frees_part = true;                          ///< a process that can't get all units frees those that
                                                     ///< it has
    bool repairs_claiming = true, repairs_owned = true, repairs_leaving = true;
    bool repairs_named_to_cell = true;  ///< a dead one's block that a cell names is the cell's
    bool gathers_leased = true;         ///< also a cell that a receiver has leased
    bool publishes_first = true;        ///< the cell names the block before the block's word changes
    bool commits_last = true;           ///< the receiver frees the cell after the block's word
    bool new_serial = true;             ///< a gift has its own serial
};

result explore(const pool_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
