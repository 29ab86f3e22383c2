#pragma once
// A state of repairer_model.cpp: cells and a tally, processes, and what the holder has in its own memory.

#include "incarnations.hpp"

namespace carousel::ipc_model::repair {

constexpr u8 most_cells = 2, most_processes = 3, max_ordered = 2;

enum class cell_is : u8 { free, claimed, marked };
struct cell_word {
    u8 lap, epoch;
    cell_is is;
    bool operator==(const cell_word&) const = default;
};
struct tally {
    u8 count, place, lap;  // place: 1 + the cell that was counted last; 0: none
    bool operator==(const tally&) const = default;
};
enum class process_is : u8 { none, listens, repairs, other_process };
enum repair_pc : u8 { marks, clears, checks, marking, reads_tally, counts, frees, reports };
struct process {
    process_is is;
    u8 serial;  // its start time
    u8 stopped, killed, orphan, reported;
    std::array<u8, max_ordered> ordered;  // epochs; 0: none
    u8 pc, k, n, in_marks;                // n: of those it was sent
    tally seen;
};
enum holder_pc : u8 {
    rests,
    checks_end,
    receives_reply,
    judges,
    checks_for_other,
    starts,
    writes_start,
    writes_pid,
    notifies,
    frees_entries
};
struct holding {
    u8 pc, waiting, ordered, freeing;  // incarnations, as bits
    u8 added;                          // the incarnations that this holder knows to be FENCED, until they are
                                       // free
    u8 mine, reported, ended;          // mine: 1 + the process
    u8 old;                            // incarnations that were FENCED when it came, where it does not search
                                       // for them
    std::array<u8, max_incarnations> epoch;
};
struct client {
    u8 at, rounds;  // at: 1 + its cell
};
struct repairer_state : common {
    std::array<cell_word, most_cells> cell{};
    tally lost{};
    std::array<client, max_incarnations> all{};
    std::array<process, most_processes> run{};
    holding h{};
    u8 named = 0, named_start = 0;  // in the space: 1 + the process, and its start time
    u8 serials = 0, died_claiming = 0;
    u8 repairer_deaths = 0, repairer_stops = 0, other_processes = 0, impatience = 0;
};

}  // namespace carousel::ipc_model::repair
