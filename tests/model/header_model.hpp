#pragma once
// The small model of a header: what a frame carries besides its payload, and a bit of it that flips at any
// moment. One frame passes from a maker through a reader; a latest member observes. The model distinguishes
// three parts of a header: what its maker knows by itself (number, times, parameters, tombstone), what lies
// in it alone (metadata, used extents, side frames), and the seal over both.
//
// Entering the maker's own fields for the last time and sealing them is one step here; it takes some 100 ns.
// Fields that only the header contains have the values that they have when it is sealed.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct header_setup {
    bool check_seal = true;         ///< a process that leases the frame compares its header first
    bool again = true;              ///< ... and once more before its own frame is SUBMITTED
    bool enter_again = true;        ///< the maker compares the fields with its own knowledge once more before
                                    ///< the seal
    bool carry_checks_seal = true;  ///< a process that seals again after SUBMITTED compares first
    bool viewer_again = true;       ///< a latest member compares after its read as well as after its lease
    bool audit = true;  ///< a header that differs from what was sealed makes the supervisor rebuild the block
    bool owner_commits = false;  ///< the maker writes metadata after SUBMITTED, too (frame::carry)
    int flips = 2, deaths = 2;
};

struct header_result {
    u64 states = 0;
    bool wrong = false;  ///< a frame was committed or shown from a header that was not sealed so, or a wrong
                         ///< one was sealed
    bool innocent = false;  ///< a reader ended more often than headers changed
    bool stuck = false;     ///< a state from which the frame is never delivered
    std::vector<std::string> trace;
    [[nodiscard]] bool sound() const { return !wrong && !innocent && !stuck; }
};

header_result explore_header(const header_setup& s);

}  // namespace carousel::model
