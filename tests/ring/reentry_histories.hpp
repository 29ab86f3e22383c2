#pragma once
// Runs of the real ring code that are rebuilt again and again, each time between two steps of its workers:
// the frames in memory enter the words of a new block (ring/reentry.hpp), and the run continues. Checks every
// delivery.

#include "core/types.hpp"
#include "ring/topology.hpp"

namespace carousel::test {

/// What memory or the old words lose before a rebuild.
struct reentry_damage {
    bool headers = false;  ///< a bit of a READY frame's header flips
    bool memory = false;   ///< a slot's memory is that of no frame
    bool words = false;    ///< tails, leases, numbers and job words of the old block are overwritten
};

struct reentry_options {
    ring::plan plan;
    u64 seed = 1, frames = 60;
    u32 rebuilds = 8;
    reentry_damage damage;
    /// The source is a program that no rebuild ends: it cannot make a frame again, its process may be alive
    /// and write into its buffer after the rebuild, and no sink may get a frame twice.
    bool made_once = false;
    /// The middle has a state, which it may continue only from the state before its frame. If a rebuild finds
    /// none, it delivers earlier frames again, or the run ends.
    bool state = false;
    /// The first sink has one, too; not with made_once, because the sink may get a frame again.
    bool sink_state = false;
};

struct reentry_outcome {
    u64 lost = 0, repeated = 0, torn = 0;
    u64 reported = 0;  ///< frames that were delivered as lost
    u64 entered = 0;   ///< frames that entered, over all rebuilds and rings
    u64 made = 0;      ///< frames that sources have committed
    bool stuck = false;
    bool ended = false;   ///< a rebuild has found no state
    std::string finding;  ///< of the audit, in a new block
    [[nodiscard]] bool sound() const { return lost + repeated + torn == 0 && !stuck && finding.empty(); }
};

/// The pipeline of a seed: a chain, a fork that joins again, or a stage with two instances.
[[nodiscard]] ring::plan reentry_plan(u64 seed);
[[nodiscard]] reentry_outcome run_with_rebuilds(const reentry_options& o);

}  // namespace carousel::test
