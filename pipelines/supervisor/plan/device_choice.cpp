#include "supervisor/plan/device_choice.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/resource_limit.hpp"
#include "device/device_failure.hpp"
#include "os/subprocess.hpp"

namespace carousel::supervisor {

using nlohmann::json;

machine_offer read_probe(const std::string& json_text) {
    machine_offer out;
    const json answer = parse_json_or_discard(json_text, json_channel::document);
    if (!answer.is_object()) {
        out.why_none = "the output of carousel-probe is not JSON: check that it is from this build";
        return out;
    }
    if (answer.contains("error") && answer["error"].is_string()) out.why_none = answer["error"];
    const json devices =
        answer.contains("devices") && answer["devices"].is_array() ? answer["devices"] : json::array();
    for (const json& d : devices) {
        if (!d.is_object() || d.contains("error")) continue;
        gpu_offer g;
        g.id = {device::device_kind::cuda, d.value("uuid", ""), d.value("ordinal", 0)};
        if (g.id.uuid == device::simulated_uuid) g.id.kind = device::device_kind::cpu;
        g.name = d.value("name", "?");
        g.vmm = d.value("vmm_posix_fd", true);
        g.read_only_host = d.value("read_only_host", false);
        g.same_host_address = d.value("same_host_address", false);
        g.one_process = d.value("exclusive_process", false);
        for (const char* key : {"total_bytes", "free_bytes"})
            if (d.contains(key) && d[key].is_number_unsigned()) g.free_bytes = d[key];
        if (d.contains("peers") && d["peers"].is_array()) {
            g.peers.emplace();
            for (const json& other : d["peers"])
                if (other.is_number_integer()) g.peers->push_back(other);
        }
        out.gpus.push_back(std::move(g));
    }
    if (out.gpus.empty() && out.why_none.empty()) out.why_none = "no CUDA device was found";
    return out;
}

json to_json(const machine_offer& machine) {
    json devices = json::array();
    for (const gpu_offer& g : machine.gpus) {
        json d{{"uuid", g.id.uuid},
               {"ordinal", g.id.ordinal},
               {"name", g.name},
               {"vmm_posix_fd", g.vmm},
               {"read_only_host", g.read_only_host},
               {"same_host_address", g.same_host_address},
               {"exclusive_process", g.one_process},
               {"free_bytes", g.free_bytes}};
        if (g.peers) d["peers"] = *g.peers;
        devices.push_back(std::move(d));
    }
    return {{"devices", devices}, {"error", machine.why_none}};
}

machine_offer probe_machine(const std::string& folder, bool opens) {
    constexpr u32 timeout_ms = 20'000;
    std::vector<std::string> words{folder + "/carousel-probe"};
    if (!opens) words.emplace_back("--quick");
    const subprocess_result r = run_subprocess(words, "", timeout_ms);
    if (r.succeeded()) return read_probe(r.output);
    if (r.short_of_resources) throw out_of_resources("starting carousel-probe: " + r.error);
    machine_offer none;
    none.why_none =
        r.started ? "carousel-probe: " + r.ending(timeout_ms) : "carousel-probe can't be started: " + r.error;
    return none;
}

device_choice choose_device(const std::string& requested, const machine_offer& machine, runs_on needed) {
    if (requested == "cpu") return {{}, "cpu", true};
    if (requested == "auto") {
        if (needed == runs_on::cpu || (machine.gpus.empty() && needed == runs_on::any))
            return {{}, "cpu", true};
        if (machine.gpus.empty())
            throw device_error(fmt::format(
                "it runs only on a GPU, and there is none: {}; see `carousel doctor`", machine.why_none));
        const gpu_offer& g = machine.gpus.front();
        return {
            g.id,         fmt::format("cuda:{}", g.id.ordinal), g.vmm, g.read_only_host, g.same_host_address,
            g.one_process};
    }
    for (const gpu_offer& g : machine.gpus)
        if (requested == fmt::format("cuda:{}", g.id.ordinal))
            return {g.id, requested, g.vmm, g.read_only_host, g.same_host_address, g.one_process};
    std::string known;
    for (const gpu_offer& g : machine.gpus)
        known += fmt::format("{}cuda:{} ({})", known.empty() ? "" : ", ", g.id.ordinal, g.name);
    throw device_error(
        fmt::format("device {}: there is no such device; {}; use --device cpu, or see `carousel doctor`",
                    requested, known.empty() ? machine.why_none : "this machine has " + known));
}

}  // namespace carousel::supervisor
