#pragma once
// Maps an offset in the control block to the object that lies there, for reports of wild writes.

#include "shm/control_block.hpp"

namespace carousel::shm {

/// The numeric values are stored in a word (ring/wild_write.hpp) and must not change.
enum class block_part : u8 {
    head = 0,  ///< identity, sizes, END, the supervisor's own words; static, or written by the supervisor
    pace = 1,  ///< when the next frame is due
    parameters = 2,    ///< which set applies from which frame, and the sets
    stage = 3,         ///< a stage's description; the index is the stage's, likewise below
    doorbell = 4,      ///< of a stage
    telemetry = 5,     ///< a stage's counters
    seat = 6,          ///< the process on a seat
    seat_asked = 7,    ///< what was requested of a seat, and its bell
    ring = 8,          ///< a ring's description
    ring_words = 9,    ///< its tail, slots, groups, event tags
    source = 10,       ///< a source's description
    numbers = 11,      ///< its lap words and claim
    asset = 12,        ///< description and state of an asset
    turn = 13,         ///< a GPU's token
    jobs = 14,         ///< the job words of all seats
    job_records = 15,  ///< timestamps and the sequence of each job
    entry = 16,        ///< the entry of an incarnation
    events = 17,       ///< event handles of an incarnation
    headers = 18,      ///< frame headers of a ring
};

struct block_place {
    block_part part = block_part::head;
    u32 index = 0;   ///< of the stage, ring, incarnation ...
    u64 offset = 0;  ///< in that part
};

/// Returns the part at `offset`, which must be below sizeof(control_block).
[[nodiscard]] block_place place_in_block(u64 offset) noexcept;

}  // namespace carousel::shm
