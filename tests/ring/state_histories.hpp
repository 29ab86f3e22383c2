#pragma once
// Seeded histories of a stage with state over the real code of the ring: source -> middle -> sink, where the
// middle, and on request source and sink, computes each state from the previous one. The device runs the work
// of a process in order, and what a killed process has enqueued still runs until the fence. A state is a hash
// of all frames that it contains, so one that was computed from a torn, lost or repeated state, or from that
// of another frame, makes the number wrong that the sink gets.
//
// tests/model/state_model.hpp has the same rules, in every order of small set-ups.

#include <string>

#include "core/types.hpp"

namespace carousel::test {

struct state_options {
    u64 seed = 1, frames = 40;
    u32 in_flight = 2, kills = 12, window = 0;
    u32 kill_rate = 8;        ///< per thousand steps
    bool source = false;      ///< the source has a state, too
    bool sink = false;        ///< the sink, too: its only ring is that of its states
    bool tombstones = false;  ///< deaths count as attempts, and a frame becomes a tombstone after one
    bool watched = false;     ///< a latest member reads the ring of states

    // What a control leaves out or does wrong.
    bool owner_commits = true;       ///< otherwise the sink may commit for the middle
    bool commits_in_order = true;    ///< n before n + 1
    bool waits_for_previous = true;  ///< the work on n waits for that on n - 1
    bool writes_in_process = true;   ///< otherwise in finish()
    bool copies_at_tombstone = true;
};

struct state_outcome {
    u64 wrong = 0, repeated = 0, disorder = 0, spurious = 0, lost = 0, seen_wrong = 0;
    bool stuck = false;
    std::string finding;
    u64 kills = 0, tombstones = 0, late_writes = 0, delivered = 0, seen = 0;
    [[nodiscard]] bool sound() const {
        return wrong + repeated + disorder + spurious + lost + seen_wrong == 0 && !stuck && finding.empty();
    }
};

[[nodiscard]] state_outcome state_history(const state_options& o);

}  // namespace carousel::test
