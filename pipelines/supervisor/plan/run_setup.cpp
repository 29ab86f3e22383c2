#include "supervisor/plan/run_setup.hpp"

#include <algorithm>

namespace carousel::supervisor {

bool run_setup::has_mps() const noexcept {
    return std::any_of(stages.begin(), stages.end(), [](const stage_setup& s) { return s.mps; });
}

ring::plan plan_of(const run_setup& s) {
    ring::plan p;
    p.pipeline = s.name;
    p.width = s.width;
    p.height = s.height;
    p.fps = s.fps;
    p.frame_timeout_ns = s.frame_timeout_ns;
    p.latest_lease_ns = s.latest_lease_ns;
    p.end = s.end;
    p.first = s.counters;
    for (const stage_setup& from : s.stages) {
        ring::stage_plan to;
        to.name = from.name;
        to.inputs = from.inputs;
        to.has_output = from.has_output();
        to.in_flight = from.in_flight;
        to.instances = from.instances;
        to.max_attempts = from.max_attempts;
        to.frame_timeout_ns = from.frame_timeout_ns;
        to.owner_commits = from.owner_commits;
        to.latest = from.latest;
        to.optional = from.optional;
        to.ends = from.ends;
        to.window = from.window;
        to.slot_bytes = from.slot_bytes;
        p.stages.push_back(std::move(to));
    }
    return p;
}

}  // namespace carousel::supervisor
