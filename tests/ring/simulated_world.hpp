#pragma once
// Stands in for a device in the simulated histories: contents of slots, and events that fire on request.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "device/backend.hpp"
#include "ring/topology.hpp"
#include "shm/segment.hpp"
#include "simulation.hpp"
#include "tests/support/event_context.hpp"

namespace carousel::test {

inline ring::plan plan_of(const simulation_options& o) {
    ring::plan p;
    p.pipeline = "simulated";
    p.stages = {{"source", {}, true, o.in_flight, 1},
                {"middle", {0}, true, o.in_flight, o.instances},
                {"left", {1}, false, 2, 1},
                {"right", {1}, false, 1, 1}};
    if (o.fork) {
        p.stages[2].inputs = {1, 0, 1};
        p.stages[2].input_outputs = {0, 1, 1};
        p.stages[3].input_outputs = {1};
    }
    for (u32 k = 0; k < 2; ++k) {
        p.stages[k].window = o.window;
        p.stages[k].slot_bytes = 256;
        // the second ring is narrower: the producer that fills the first ring completely must notice that
        if (o.fork) p.stages[k].more = {{p.stages[k].name + ".more", std::max(o.window, 4U) - 2, 256}};
    }
    p.stages[2].every = o.every;
    p.stages[0].ends = o.ends_at != ~u64{0};
    p.first = o.first;
    p.end = o.stop_early ? ring::end_unknown : o.frames;
    p.latest_lease_ns = ~u64{0} >> 1U;  // revoked by the scheduler, not by the clock
    return p;
}

/// The state of a device: the content per link and slot, and per (incarnation, slot) whether its event has
/// fired.
struct world {
    shm::private_block c = shm::make_private_block();
    std::map<std::pair<u32, u32>, u64> content;  // (link, slot) -> sequence written; ~0 while being written
    // (entry, slot of the first output) -> recorded and not complete
    std::map<std::pair<u32, u32>, bool> pending;
    std::map<u32, std::vector<u64>> delivered;  // sink stage -> sequences in order of commit
    simulation_result result;
    std::mt19937_64 random;
    u64 below(u64 n) { return random() % n; }
};

/// Events behave as CUDA's: one that was never recorded reads as complete.
inline event_context::query events_of(world& w) {
    return [&w](u32 entry, u32 slot) {
        const auto at = w.pending.find({entry, slot});
        return at == w.pending.end() || !at->second;
    };
}

}  // namespace carousel::test
