#pragma once
// The small model of a rebuild that keeps frames (ring/reentry.hpp): a source, a stage with two jobs and a
// sink in order, and rings with a window of two. At any step all processes may end, also between two steps of
// a job; then the words are made again from what memory shows, with the sink's account as the only other
// source. One copy of a frame in memory may be unprovable at each rebuild.
//
// A job's steps are: lease and FILL in one step (no process is between them after a rebuild), work,
// COMMITTED, READY, inputs DONE. WHOLE means that the status word shows READY, although host work of the
// frame may follow until COMMITTED. A frame becomes READY in its ring before its state does. Each ring has
// one reader; tests/ring/test_reentry.cpp has forks and joins.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::model {

struct reentry_setup {
    bool proof = true;             ///< an unprovable copy does not enter
    bool ready_slots_only = true;  ///< a frame enters only if its slot was READY
    bool without_gaps = true;      ///< frames after a missing frame do not enter
    bool numbers_done = true;      ///< a source's number that entered is done
    bool slowest_reader = true;    ///< a tail is the position of the slowest reader, not of the fastest
    /// The source is a program, which writes each number once: a frame that is lost keeps its place.
    bool made_once = false;
    bool keeps_place = true;  ///< with made_once: a lost frame enters as a tombstone
    /// The stage has a ring of states: each frame needs the state before it, and is committed after that.
    bool state = false;
    bool state_proved = true;  ///< with state: the stage continues only after a state that memory proves
    bool state_enters = true;  ///< with state: that state enters the words, below the tail
    int frames = 3, rebuilds = 2;
};

struct reentry_result {
    u64 states = 0;
    u64 entered = 0;        ///< largest number of frames that entered at one rebuild
    bool wrong = false;     ///< an unproved or incomplete frame was read
    bool repeated = false;  ///< a frame was made while it was in its ring, or delivered twice
    bool lost = false;      ///< the sink has got a frame before an earlier one
    bool reused = false;    ///< a program has written a number twice
    bool excess = false;    ///< a frame was given up that memory proves
    bool stuck = false;     ///< a state from which not all frames can be delivered
    std::vector<std::string> trace;
    [[nodiscard]] bool sound() const { return !wrong && !repeated && !lost && !reused && !excess && !stuck; }
};

reentry_result explore_reentry(const reentry_setup& s);

}  // namespace carousel::model
