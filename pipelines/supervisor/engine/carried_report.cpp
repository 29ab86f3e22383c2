#include "supervisor/engine/carried_report.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "telemetry/frame_facts.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

json clock_json(shm::capture_clock clock) {
    if (clock == shm::capture_clock::live) return "live";
    return clock == shm::capture_clock::recorded ? json("recorded") : json();
}

json used_of(const ring_setup& r, const shm::used_extents& used) {
    try {
        return telemetry::used_json(ring::frame_format::from_json(r.format.dump()), used);
    } catch (const error&) {  // a report is written whatever a format looks like
        return json::object();
    }
}

}  // namespace

json carried_json(const stage_setup& st, const shm::control_block& c, u32 stage, u32 output) {
    if (output >= std::min(st.outputs(), shm::max_outputs) || stage >= std::min(c.stages, shm::max_stages))
        return {};
    const auto f = telemetry::last_facts(c, c.stage[stage].output_link[output]);
    if (!f || f->empty()) return {};
    return {{"frame", f->sequence},
            {"void", f->is_void},
            {"capture_clock", clock_json(f->clock)},
            {"capture_ns", f->capture_ns != 0 ? json(f->capture_ns) : json()},
            {"metadata", telemetry::metadata_json(f->metadata)},
            {"metadata_left_out", f->metadata_left_out},
            {"used", used_of(st.ring(output), f->used)}};
}

}  // namespace carousel::supervisor
