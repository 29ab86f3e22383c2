#pragma once
// The small model of checkpoints (run/checkpoint.hpp): two stages with a state, one downstream of the other,
// and a sink; only its account and files survive. A process may die before the commit of a frame; the frame
// is then made again, or becomes a tombstone, whose state is another one. At any step all memory may be lost;
// then the run begins again at the newest number in the list. With `link_keeps`, another host sends the
// frames: it keeps this number of them, from the first that the run has not released to it.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct checkpoint_setup {
    bool after_commit = true;  ///< a state is written after the commit of its frame
    bool whole_files = true;   ///< a file appears under its name when it is whole
    bool all_stages = true;    ///< a number is listed when every stage has written its file
    bool delivered = true;     ///< ... and when the sink has delivered all frames below it
    bool begins_clean = true;  ///< a run that begins again removes the files of later frames
    bool list_first = true;    ///< older files are removed after the list that no longer has them
    int frames = 5, losses = 2;
    int link_keeps = 0;          ///< 0: the run makes its frames itself
    bool release_listed = true;  ///< only frames below the newest number in the list are released
    /// A frame whose state is due waits until the one before is written, by a successor if its process dies;
    /// otherwise the state is left out.
    bool waits_for_file = false;
    int rebuilds = 0;         ///< of words, which keep all frames and states
    bool keeps_files = true;  ///< a rebuild leaves the files of the states that it keeps
};

struct checkpoint_result {
    u64 states = 0;
    int restarts_from = 0;  ///< the largest number from which a run has begun again
    bool wrong = false;     ///< a stage has continued from a state that is not that before its frame
    bool lost = false;      ///< a run has begun after a frame that the sink lacks
    bool stuck = false;     ///< a state from which not every frame is delivered
    std::vector<std::string> trace;
    [[nodiscard]] bool sound() const { return !wrong && !lost && !stuck; }
};

checkpoint_result explore_checkpoints(const checkpoint_setup& s);

}  // namespace carousel::model
