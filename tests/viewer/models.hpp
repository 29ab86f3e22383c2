#pragma once
// Models of every kind of run, for drawing.

#include "core/clock.hpp"
#include "telemetry/histogram.hpp"
#include "tests/viewer/rig.hpp"
#include "viewer/model.hpp"

namespace carousel::test {

/// Watches a rig: feeds the model as a session would.
struct watched {
    rig r;
    viewer::model m;
    telemetry::rate_tracker tracker;
    u64 time_ns = 10 * ns_per_s;

    explicit watched(ring::plan p) : r(std::move(p)) {
        m.phase = viewer::run_phase::watching;
        m.run.name = "demo";
        m.run.run_id = "rig";
    }
    void look() {
        telemetry::read_snapshot(r.block(), m.snap);
        m.snap.run_id = "rig";
        m.snap.taken_ns = m.now_ns = time_ns;
        m.rates = tracker.feed(m.snap);
        m.past.feed(m.snap, m.rates);
        m.events.feed(m.snap);
        for (const telemetry::crash& c : m.events.take_deaths()) m.past.mark(c.died_ns, c.stage);
        m.bars.feed(m.snap);
    }
    /// Frames at 60 a second, with plausible counters.
    void run(int turns) {
        for (int k = 0; k < turns; ++k) {
            r.turn();
            time_ns += 16'666'667;
            for (u32 s = 0; s < r.block().stages; ++s) {
                shm::stage_counters& c = r.block().stage[s].counters;
                const u64 ns = (s + 1) * 1'100'000 + static_cast<u64>(k % 7) * 90'000;
                telemetry::add_sample(c.latency, ns);
                c.busy_ns.fetch_add(ns);
                c.wait_input_ns.fetch_add(4'000'000);
                if (s + 1 == r.block().stages) telemetry::add_sample(c.end_to_end, ns * 4);
            }
            look();
        }
    }
};

}  // namespace carousel::test
