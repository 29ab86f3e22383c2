#pragma once
// Models of every kind of run, for drawing.

#include "core/clock.hpp"
#include "ring/parameter_box.hpp"
#include "telemetry/histogram.hpp"
#include "tests/viewer/rig.hpp"
#include "tests/viewer/scene_schema.hpp"
#include "viewer/session/model.hpp"

namespace carousel::test {

/// Watches a rig: feeds the model as a session would.
struct watched {
    rig r;
    viewer::model m;
    telemetry::rate_tracker tracker;
    u64 time_ns = 10 * ns_per_s;
    bool fixed = false;  ///< read() shows nothing of the real clock

    explicit watched(ring::plan p) : r(std::move(p)) {
        m.phase = viewer::run_phase::watching;
        m.run.name = "demo";
        m.run.run_id = "rig";
        m.schema = scene_schema();
        m.values = m.schema.initial_values();
        ring::initialise_parameters(r.block().parameters, m.values, 0);
    }
    void read() {
        telemetry::read_snapshot(r.block(), m.snap);
        m.snap.run_id = "rig";
        m.snap.taken_ns = m.now_ns = time_ns;
        if (fixed) fix_times();
        m.rates = tracker.feed(m.snap);
        m.past.feed(m.snap, m.rates);
        m.events.feed(m.snap);
        for (const telemetry::crash& c : m.events.take_deaths()) m.past.mark(c.died_ns, c.stage);
        m.bars.feed(m.snap);
    }
    /// Times that the test rig takes from the real clock are replaced by functions of the frame.
    void fix_times() {
        m.snap.created_ns = 5 * ns_per_s;
        for (telemetry::seat_view& s : m.snap.seats) {
            s.heartbeat_ns = time_ns - 12 * ns_per_ms;
            s.live_since_ns = 6 * ns_per_s;
        }
        for (telemetry::link_view& l : m.snap.links)
            for (telemetry::slot_view& s : l.slots) {
                if (s.claimed_ns == 0) continue;
                s.born_ns = 10 * ns_per_s + s.ring_sequence * 16'666'667;
                s.claimed_ns = s.born_ns + l.stage * 4 * ns_per_ms;
                s.submitted_ns = s.claimed_ns + ns_per_ms;
                s.committed_ns = s.claimed_ns + (l.stage + 2) * 2 * ns_per_ms;
            }
        for (telemetry::job_view& j : m.snap.jobs) {
            j.process_since_ns = time_ns - 9 * ns_per_ms;
            j.submitted_since_ns = j.state == ring::job_state::submitted ? time_ns - 5 * ns_per_ms : 0;
        }
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
            read();
        }
    }
};

}  // namespace carousel::test
