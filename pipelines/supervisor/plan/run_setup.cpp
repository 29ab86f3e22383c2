#include "supervisor/plan/run_setup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

bool stage_setup::reads(u32 stage) const noexcept {
    return std::find(spec.input_indices.begin(), spec.input_indices.end(), stage) != spec.input_indices.end();
}

bool stage_setup::reads(u32 stage, u32 output) const noexcept {
    for (std::size_t i = 0; i < spec.input_indices.size(); ++i)
        if (spec.input_indices[i] == stage && output_of_input(i) == output) return true;
    return false;
}

bool stage_setup::samples(u32 stage, u32 output) const noexcept {
    for (std::size_t i = 0; i < spec.sampled_indices.size(); ++i)
        if (spec.sampled_indices[i] == stage && output_of_sampled(i) == output) return true;
    return false;
}

u32 stage_setup::instances_on(const std::string& uuid) const noexcept {
    if (devices.empty()) return device.uuid == uuid ? spec.instances : 0;
    u32 count = 0;
    for (u32 k = 0; k < spec.instances; ++k) count += device_of(k).uuid == uuid ? 1 : 0;
    return count;
}

bool run_setup::has_mps() const noexcept {
    return std::any_of(stages.begin(), stages.end(), [](const stage_setup& s) { return s.mps; });
}

// A frame that is produced again after a death may get a newer frame of the sampled input, and so may the
// same frame in another run.
std::string run_setup::why_not_comparable() const {
    std::string text;
    for (const stage_setup& s : stages)
        if (!s.spec.sampled_inputs.empty())
            text += fmt::format("{}stage {} takes the newest frame of {}", text.empty() ? "" : ", ",
                                s.spec.name, fmt::join(s.spec.sampled_inputs, " and "));
    return text;
}

std::vector<ring_place> run_setup::rings() const {
    std::vector<ring_place> all;
    for (u32 k = 0; k < stages.size(); ++k)
        for (u32 o = 0; o < stages[k].outputs(); ++o) all.push_back({k, o});
    return all;
}

ring::plan plan_of(const run_setup& s) {
    ring::plan p;
    p.pipeline = s.name;
    p.width = s.width;
    p.height = s.height;
    p.fps = s.fps;
    p.frame_timeout_ns = s.frame_timeout_ns();
    p.latest_lease_ns = s.latest_lease_ns();
    p.end = s.end;
    p.first = s.counters;
    for (const stage_setup& from : s.stages) {
        ring::stage_plan to = stage_plan_of(from.spec, from.link);
        if (from.lanes != 0) to.in_flight = from.lanes;
        if (from.window != 0) to.window = from.window;
        to.has_output = from.has_output();
        to.owner_commits = from.owner_commits;
        to.ends = from.ends;
        to.slot_bytes = from.slot_bytes;
        to.input_outputs = from.input_outputs;
        to.sampled_outputs = from.sampled_outputs;
        for (u32 o = 1; o < from.outputs(); ++o) {
            const ring_setup& r = from.ring(o);
            const u32 window = r.window != 0 ? r.window : r.link.window.value_or(0);
            to.more.push_back({from.ring_name(o), window, r.slot_bytes});
        }
        p.stages.push_back(std::move(to));
    }
    return p;
}

}  // namespace carousel::supervisor
