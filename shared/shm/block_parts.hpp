#pragma once
// What lies at a place of the control block, for whoever has to say where a stray write went.

#include "shm/control_block.hpp"

namespace carousel::shm {

/// Their numbers travel in a word (ring/wild_write.hpp), so they stay.
enum class block_part : u8 {
    head = 0,          ///< identity, sizes, END, the supervisor's own words; static, or the supervisor's
    pace = 1,          ///< when the next frame is due
    parameters = 2,    ///< which set counts from when, and the sets
    stage = 3,         ///< a stage's description; the index is the stage's, as below
    doorbell = 4,      ///< of a stage
    telemetry = 5,     ///< a stage's counters
    seat = 6,          ///< who sits where
    seat_asked = 7,    ///< what a seat was asked for, and its bell
    ring = 8,          ///< a ring's description
    ring_words = 9,    ///< its tail, slots, groups, event tags
    source = 10,       ///< a source's description
    numbers = 11,      ///< its words
    asset = 12,        ///< description and state of an asset
    turn = 13,         ///< a GPU's token
    jobs = 14,         ///< the job words of all seats
    job_records = 15,  ///< what is told about each job
    entry = 16,        ///< the entry of a life
    events = 17,       ///< event handles of a life
    headers = 18,      ///< frame headers of a ring
};

struct block_place {
    block_part part = block_part::head;
    u32 index = 0;   ///< of the stage, ring, life ...
    u64 offset = 0;  ///< in that part
};

/// `offset` is below sizeof(control_block).
[[nodiscard]] block_place place_in_block(u64 offset) noexcept;

}  // namespace carousel::shm
