#include "spec/stage_plan.hpp"

namespace carousel::supervisor {

ring::stage_plan stage_plan_of(const stage_spec& s, const link_spec& output) {
    ring::stage_plan to;
    to.name = s.name;
    to.inputs = s.input_indices;
    to.sampled_inputs = s.sampled_indices;
    to.has_output = s.has_output;
    to.in_flight = s.in_flight.value_or(to.in_flight);
    to.instances = s.instances;
    // A frame is not abandoned because of the way in which an external program handles it.
    to.max_attempts = s.is_port() ? 0 : s.max_attempts;
    to.frame_timeout_ns = s.frame_timeout_ns();
    to.latest = s.latest();
    to.optional = s.optional;
    to.skips = s.skips();
    to.window = output.window.value_or(0);
    return to;
}

}  // namespace carousel::supervisor
