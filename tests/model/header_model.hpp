#pragma once
// The header's own small model: what a frame carries beside its payload, and a bit of it that flips at any
// moment. One frame goes from a maker through a reader; a latest member looks on. Of a header three things
// are told apart: what its maker knows by itself (number, times, parameters, void), what lies in it alone
// (metadata, used extents, side frames), and the seal over both.
//
// Entering the maker's own fields for the last time and sealing them is one step here; it takes some 100 ns.
// What lies in the header alone counts as it is when it is sealed.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct header_setup {
    bool check_seal = true;         ///< whoever leases the frame compares its header first
    bool again = true;              ///< ... and once more before its own frame is SUBMITTED
    bool enter_again = true;        ///< the maker enters what it knows once more in front of the seal
    bool carry_checks_seal = true;  ///< who seals anew behind SUBMITTED compares before
    bool viewer_again = true;       ///< a latest member compares when it has read, as when it has its lease
    bool audit = true;              ///< a header that isn't as it was sealed has the block made anew
    bool owner_commits = false;     ///< the maker writes metadata behind SUBMITTED, too (frame::carry)
    int flips = 2, deaths = 2;
};

struct header_result {
    u64 states = 0;
    bool wrong = false;  ///< a frame was committed, or shown, of what was not sealed, or a wrong one sealed
    bool innocent = false;  ///< a reader ended more often than headers changed
    bool stuck = false;     ///< a state from which the frame never comes through
    std::vector<std::string> trace;
    [[nodiscard]] bool sound() const { return !wrong && !innocent && !stuck; }
};

header_result explore_header(const header_setup& s);

}  // namespace carousel::model
