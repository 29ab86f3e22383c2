#include "supervisor/plan/setup_from.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/console.hpp"
#include "shm/control_block.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/peer_reach.hpp"

namespace carousel::supervisor {
namespace {

stage_setup stage_from(const pipeline& p, const stage_spec& spec, const stage_description& d,
                       const machine_offer& machine, const test_hooks& hooks) {
    stage_setup s;
    s.spec = spec;
    if (const auto link = p.links.find(spec.name); link != p.links.end()) s.link = link->second;
    s.program = d.program;
    s.output = d.output;
    s.input_outputs = d.input_outputs;
    s.sampled_outputs = d.sampled_outputs;
    s.format = spec.has_output ? d.format : nlohmann::json();
    s.slot_bytes = spec.has_output ? d.slot_bytes : 0;
    s.memory = s.link.memory;
    for (const output_spec& o : d.more) {
        ring_setup r{o.output, {}, o.format, o.slot_bytes};
        if (const auto link = p.links.find(spec.name + "." + o.output); link != p.links.end())
            r.link = link->second;
        r.memory = r.link.memory;
        s.more.push_back(std::move(r));
    }
    s.owner_commits = d.commits_on_host;
    if (spec.remote) {
        stage_spec seat = spec;
        seat.run = spec.remote->run;
        s.remote_program = find_program(p, seat);
        s.owner_commits = true;  // frames from another host are complete only after the stage's own work
    }
    s.ends = d.ends;
    s.forwards_frames = d.forwards_frames;
    if (d.forwards_frames) s.spec.max_attempts = 0;  // because no number of deaths abandons a frame
    s.deep_on_cpu = hooks.depth_on_cpu;
    s.writable_inputs = d.writable_inputs;
    s.mps = spec.isolation == isolation_kind::mps;
    try {
        const device_choice c = choose_device(spec.device, machine, d.device);
        s.device = c.id;
        s.device_name = c.name;
        s.read_only_host = c.read_only_host;
        s.same_host_address = c.same_host_address;
        for (const std::string& each : spec.devices) {
            const device_choice own = choose_device(each, machine, d.device);
            s.devices.push_back({own.id, own.name});
            s.read_only_host = s.read_only_host && own.read_only_host;
            s.same_host_address = s.same_host_address && own.same_host_address;
            s.device_name += s.devices.size() > 1 ? "+" + own.name : "";
        }
        s.mps = s.mps && (c.id.kind == device::device_kind::cuda || hooks.mps_on_cpu);
        // for an old driver, or one that cannot export its memory as descriptors
        for (u32 o = 0; !c.vmm && o <= s.more.size(); ++o) s.ring(o).memory = device::memory_kind::ipc;
    } catch (const device_error& e) {
        throw device_error(
            fmt::format("{}: stage {}: {}", spec.position_of("device").text(), spec.name, e.what()));
    }
    return s;
}

std::vector<asset_setup> assets_from(const pipeline& p, const std::vector<stage_description>& described) {
    std::vector<asset_setup> out;
    for (u32 k = 0; k < described.size(); ++k) {
        for (const asset_spec& a : described[k].makes) {
            const auto other =
                std::find_if(out.begin(), out.end(), [&](const asset_setup& o) { return o.name == a.name; });
            if (other != out.end())
                refuse(p.stages[k].at,
                       fmt::format("the stages {} and {} both produce the asset {}: remove one of them",
                                   p.stages[other->maker].name, p.stages[k].name, a.name));
            if (a.bytes > 0) out.push_back({a.name, a.bytes, k, {k}});
        }
    }
    if (out.size() > shm::max_assets)
        throw config_error(fmt::format("{}: more than {} assets", p.file, shm::max_assets));
    for (u32 k = 0; k < described.size(); ++k) {
        for (const std::string& name : described[k].uses) {
            const auto made =
                std::find_if(out.begin(), out.end(), [&](const asset_setup& o) { return o.name == name; });
            if (made == out.end())
                refuse(p.stages[k].at,
                       fmt::format("stage {} reads the asset {}, which no stage of this pipeline produces",
                                   p.stages[k].name, name));
            if (made->maker != k) made->users.push_back(k);
        }
    }
    return out;
}

}  // namespace

machine_offer probe_for(const pipeline& p) {
    const bool wanted =
        std::any_of(p.stages.begin(), p.stages.end(), [](const stage_spec& s) { return s.device != "cpu"; });
    return wanted ? probe_machine(executable_folder()) : machine_offer{};
}

run_setup setup_from(const pipeline& p, const run_options& o, const machine_offer& machine) {
    CAROUSEL_ASSERT(o.stages.size() == p.stages.size());
    run_setup s;
    static_cast<pipeline_spec&>(s) = p;
    s.file = p.file;
    s.folder = folder_of(p);
    s.parameters = o.parameters ? *o.parameters : plan_parameters(p, o.stages);
    if (p.frames > 0) s.end = p.frames;
    s.counters = o.hooks.counters;
    s.kept_records = o.hooks.kept_records.value_or(s.kept_records);
    s.kill_delay_ns = o.hooks.kill_delay_ns;
    s.overruns_anywhere = o.hooks.overruns_anywhere;
    s.scribbles_anywhere = o.hooks.scribbles_anywhere;
    s.audits_at_deaths_alone = o.hooks.audits_at_deaths_alone;
    s.report_path = o.report_file;
    s.color = o.color;
    s.terminal = understands_escapes(STDERR_FILENO);
    for (u32 k = 0; k < p.stages.size(); ++k)
        s.stages.push_back(stage_from(p, p.stages[k], o.stages[k], machine, o.hooks));
    s.assets = assets_from(p, o.stages);
    const bool same = std::all_of(s.stages.begin(), s.stages.end(), [&](const stage_setup& st) {
        return st.device_name == s.stages.front().device_name;
    });
    choose_depths(s, free_memory_of(machine));
    require_reach(s, machine);
    require_guards(s);
    s.device_name = same ? s.stages.front().device_name : "mixed";
    return s;
}

}  // namespace carousel::supervisor
