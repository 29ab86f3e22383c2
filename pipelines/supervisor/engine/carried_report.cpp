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
    } catch (const error&) {  // the report is written even if a format is invalid
        return json::object();
    }
}

/// Returns the frame that was used of each sampled input, by the input's name; null if there was none yet.
json sampled_frames_of(const stage_setup& st, const std::vector<u64>& frames) {
    json out = json::object();
    for (std::size_t k = 0; k < std::min(frames.size(), st.spec.sampled_inputs.size()); ++k)
        out[st.spec.sampled_inputs[k]] = frames[k] == shm::no_sampled_frame ? json() : json(frames[k]);
    return out;
}

bool carries_nothing(const ring::frame_facts& f) {
    return f.capture_ns == 0 && f.metadata.empty() && f.metadata_omitted == 0 && f.used.planes == 0 &&
           f.sampled_frames.empty();
}

}  // namespace

json carried_json(const stage_setup& st, const shm::control_block& c, u32 stage, u32 output) {
    if (output >= std::min(st.outputs(), shm::max_outputs) || stage >= std::min(c.stages, shm::max_stages))
        return {};
    const auto f = telemetry::last_facts(c, c.stage[stage].output_link[output]);
    if (!f || carries_nothing(*f)) return {};
    json j{{"frame", f->ring_sequence},
           {"tombstone", f->is_tombstone()},
           {"capture_clock", clock_json(f->clock)},
           {"capture_ns", f->capture_ns != 0 ? json(f->capture_ns) : json()},
           {"metadata", telemetry::metadata_json(f->metadata)},
           {"metadata_omitted", f->metadata_omitted},
           {"used", used_of(st.ring(output), f->used)}};
    if (!st.spec.sampled_inputs.empty()) j["sampled"] = sampled_frames_of(st, f->sampled_frames);
    return j;
}

}  // namespace carousel::supervisor
