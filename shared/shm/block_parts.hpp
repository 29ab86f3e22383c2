#pragma once
// Maps an offset in the control block to the object that lies there, for reports of wild writes.

#include "shm/control_block.hpp"

namespace carousel::shm {

/// The numeric values are stored in a word (ring/wild_write.hpp) and must not change.
enum class block_part : u8 {
    head = 0,  ///< identity, sizes, END, the supervisor's own words; static, or written by the supervisor
    pace = 1,  ///< the time when the next frame is due
    parameters = 2,    ///< the frames from which each parameter set applies, and the sets
    stage = 3,         ///< a stage's description; the index is that of the stage, likewise below
    doorbell = 4,      ///< of a stage
    telemetry = 5,     ///< a stage's counters
    seat = 6,          ///< the process on a seat
    seat_asked = 7,    ///< the requests to a seat, and its bell
    ring = 8,          ///< a ring's description
    ring_words = 9,    ///< a ring's tail, slots, groups, event tags
    source = 10,       ///< a source's description
    numbers = 11,      ///< a source's lap words and claim
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
    u32 index = 0;   ///< index of the stage, ring, incarnation ...
    u64 offset = 0;  ///< in that part
};

/// Returns the part at `offset`, which must be below sizeof(control_block).
[[nodiscard]] block_place place_in_block(u64 offset) noexcept;

}  // namespace carousel::shm
