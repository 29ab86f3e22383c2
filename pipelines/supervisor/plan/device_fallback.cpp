#include "supervisor/plan/device_fallback.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_text.hpp"
#include "spec/fallback_check.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {
namespace {

bool is_there(const machine_offer& machine, u32 ordinal) noexcept {
    return std::any_of(machine.gpus.begin(), machine.gpus.end(),
                       [&](const gpu_offer& g) { return g.id.ordinal == static_cast<int>(ordinal); });
}

std::vector<std::string> devices_of(const stage_spec& s) {
    return s.devices.empty() ? std::vector<std::string>{s.device} : s.devices;
}

}  // namespace

bool fallback_state::contains(const std::string& stage) const noexcept {
    return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

fallback_state saved_fallback(const std::string& directory) {
    fallback_state out;
    const nlohmann::json state = read_json_file(directory + "/state.json");
    try {
        if (state.is_object()) state.at("run").at("fallback").get_to(out);
    } catch (const nlohmann::json::exception&) {
        return {};
    }
    return out;
}

bool same_gpus(nlohmann::json a, nlohmann::json b) {
    for (nlohmann::json* each : {&a, &b})
        if (each->is_object() && each->contains("devices"))
            for (nlohmann::json& d : (*each)["devices"])
                if (d.is_object()) d.erase("free_bytes");
    return a == b;
}

machine_offer with_wanted_gpus(machine_offer machine, const pipeline& p) {
    for (const stage_spec& s : p.stages) {
        for (const std::string& device : devices_of(s)) {
            const std::optional<u32> wanted = gpu_number(device);
            if (!wanted || is_there(machine, *wanted)) continue;
            gpu_offer g;
            g.id = {device::device_kind::cuda, fmt::format("absent-{}", *wanted), static_cast<int>(*wanted)};
            machine.gpus.push_back(std::move(g));
        }
    }
    return machine;
}

std::vector<std::string> stages_without_gpu(const pipeline& p, const machine_offer& machine) {
    std::vector<std::string> names;
    for (const stage_spec& s : p.stages) {
        const std::vector<std::string> devices = devices_of(s);
        const bool lacks = std::any_of(devices.begin(), devices.end(), [&](const std::string& device) {
            const std::optional<u32> wanted = gpu_number(device);
            return wanted && !is_there(machine, *wanted);
        });
        if (!lacks) continue;
        if (!may_leave_gpu(p, s)) return {};
        names.push_back(s.name);
    }
    return names;
}

std::vector<std::string> movable_stages(const run_setup& s) {
    std::vector<std::string> names;
    for (const stage_setup& st : s.stages)
        if (st.may_leave_gpu) names.push_back(st.spec.name);
    return names;
}

nlohmann::json report_of(const fallback_state& f, const run_setup& s, u64 started_ns) {
    if (movable_stages(s).empty()) return nullptr;
    nlohmann::json changes = nlohmann::json::array();
    for (const fallback_record& r : f.last) {
        const bool known = r.next_frame_ns >= r.at_ns && r.next_frame_ns != 0;
        changes.push_back(
            {{"stages", r.stages},
             {"to", r.to},
             {"why", r.why},
             {"at_s", static_cast<f64>(r.at_ns - std::min(r.at_ns, started_ns)) / 1e9},
             {"frame", r.frame},
             {"next_frame_ms",
              known ? nlohmann::json(static_cast<f64>(r.next_frame_ns - r.at_ns) / 1e6) : nlohmann::json()}});
    }
    return {{"stages", f.stages},
            {"fallbacks", f.fallbacks},
            {"returns", f.returns},
            {"changes", changes},
            {"inexact", s.inexact_stages}};
}

std::string moves_text(const fallback_state& f) {
    if (f.fallbacks + f.returns == 0) return "";
    const auto times = [](u64 n) { return n == 1 ? std::string("once") : fmt::format("{} times", n); };
    return fmt::format("moved to the CPU {}, back to the GPU {}", times(f.fallbacks),
                       f.returns == 0 ? "never" : times(f.returns));
}

void copy_device_plan(run_setup& running, const run_setup& next) {
    for (std::size_t k = 0; k < running.stages.size(); ++k) {
        stage_setup& to = running.stages[k];
        const stage_setup& from = next.stages[k];
        to.device = from.device;
        to.device_name = from.device_name;
        to.devices = from.devices;
        to.left_gpu = from.left_gpu;
        to.read_only_host = from.read_only_host;
        to.same_host_address = from.same_host_address;
        to.mps = from.mps;
        to.one_server = from.one_server;
        to.lanes = from.lanes;
        if (to.spec.standby_auto) to.spec.standby = from.spec.standby;
        for (u32 o = 0; o <= to.more.size(); ++o) {
            to.ring(o).window = from.ring(o).window;
            to.ring(o).memory = from.ring(o).memory;
        }
    }
    running.device_name = next.device_name;
    running.depth_lowered = next.depth_lowered;
    running.depth_reason = next.depth_reason;
    running.standby_reason = next.standby_reason;
}

}  // namespace carousel::supervisor
