#include "supervisor/plan/run_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/io.hpp"
#include "core/json_text.hpp"
#include "ledger/ledger.hpp"
#include "shm/runtime_folder.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

json parameters_identity(const parameter_plan& p) {
    if (!p.schema) return nullptr;
    return {{"schema", p.schema.to_json()}, {"values", p.schema.values_json(p.values)}};
}

// All keys with their resolved values, except standby, which is a choice of the supervisor: a successor may
// keep standbys even if the first supervisor kept none.
json stage_json(const stage_setup& s) {
    json j = values_of(s.spec);
    j.erase("standby");
    j.update({{"run", s.program},
              {"settings", s.spec.settings},
              {"format", s.format},
              {"slot_bytes", s.slot_bytes},
              {"device", s.device_name},
              {"uuid", s.device.uuid},
              {"isolation", word_of(isolation_words, s.mps ? isolation_kind::mps : isolation_kind::process)},
              {"commits_on_host", s.owner_commits},
              {"ends", s.ends},
              {"forwards_frames", s.forwards_frames},
              {"writable_inputs", s.writable_inputs}});
    if (const auto& remote = s.spec.remote)
        j["remote"] = {{"host", remote->host},
                       {"instances", remote->instances},
                       {"run", s.remote_program},
                       {"settings", remote->settings}};
    for (const stage_device& d : s.devices) j["uuids"].push_back(d.id.uuid);
    j.update(values_of(s.link));
    j["memory"] = device::name_of(s.memory);
    if (!s.output.empty()) j["output"] = s.output;
    for (const ring_setup& r : s.more) {
        json other{{"output", r.output}, {"format", r.format}, {"slot_bytes", r.slot_bytes}};
        other.update(values_of(r.link));
        other["memory"] = device::name_of(r.memory);
        j["more_outputs"].push_back(std::move(other));
    }
    return j;
}

/// Converts "/stages/2/in_flight" -> "stage fragment: in_flight".
std::string named(const std::string& path, const json& there, const json& here) {
    std::string text = path.substr(std::min<std::size_t>(1, path.size()));
    std::string prefix;
    if (text.starts_with("stages/")) {
        const std::size_t end = std::min(text.find('/', 7), text.size());
        const json::json_pointer at("/" + text.substr(0, end));
        const json& stages = there.contains(at) ? there : here;
        prefix = fmt::format("stage {}: ", stages.contains(at) ? stages.at(at).value("name", "?") : "?");
        text = end < text.size() ? text.substr(end + 1) : "the stage itself";
    }
    for (char& c : text)
        if (c == '/') c = '.';
    for (std::size_t at = 0; (at = text.find("~1", at)) != std::string::npos; ++at)
        text.replace(at, 2, "/");  // in a file's name
    return prefix + text;
}

std::string value_text(const json& j, const json::json_pointer& at) {
    if (!j.contains(at)) return "not there";
    std::string text =
        j.at(at).is_string() ? fmt::format("\"{}\"", j.at(at).get<std::string>()) : j.at(at).dump();
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

json identity_of(const run_setup& s) {
    json stages = json::array(), assets = json::array();
    for (const stage_setup& st : s.stages) stages.push_back(stage_json(st));
    for (const asset_setup& a : s.assets)
        assets.push_back({{"name", a.name}, {"bytes", a.bytes}, {"maker", a.maker}, {"users", a.users}});
    json j = values_of(static_cast<const pipeline_spec&>(s));
    for (const char* each : {"device", "isolation"}) j.erase(each);  // the stages have the resolved values
    j.erase("allow_dead_letters");                                   // belongs to the supervisor: affects
                                                                     // only its exit code
    j.update({{"frames", s.end == ring::end_unknown ? 0 : s.end},
              {"parameters", parameters_identity(s.parameters)},
              {"stages", stages},
              {"assets", assets}});
    return j;
}

std::string digest_of(const json& identity) {
    const std::string text = identity.dump(-1, ' ', false, json::error_handler_t::replace);
    return fmt::format("{:016x}", telemetry::hash_bytes(std::as_bytes(std::span(text.data(), text.size()))));
}

std::string difference(const json& there, const json& here) {
    if (digest_of(there) == digest_of(here)) return "";
    // The number of stages and their names come first: differences inside the stages mean little if the
    // stages differ.
    const auto names = [](const json& j) {
        json out = json::array();
        for (const json& s : j.value("stages", json::array())) out.push_back(s.value("name", ""));
        return out;
    };
    if (names(there) != names(here))
        return fmt::format("its stages are {} there and {} here", names(there).dump(), names(here).dump());
    for (const json& step : json::diff(there, here)) {
        const std::string path = step.value("path", "");
        const json::json_pointer at(path);
        return fmt::format("{} is {} there and {} here", named(path, there, here), value_text(there, at),
                           value_text(here, at));
    }
    return "they differ";  // the texts differ but the values are equal, e.g. 1 and 1.0
}

void write_identity(const std::string& folder, const json& identity, const run_setup& prepared) {
    json outs = json::object();
    for (const stage_setup& s : prepared.stages)
        if (s.spec.settings.contains("out")) outs[s.spec.name] = s.spec.settings["out"];
    const json text{{"digest", digest_of(identity)},
                    {"pipeline", identity},
                    {"outs", outs},
                    {"output_directory", prepared.output_directory},
                    {"pictures", prepared.pictures},
                    {"depths", depths_json(prepared)}};
    shm::write_whole_file(folder + "/pipeline.json",
                          text.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<stored_identity> read_identity(const std::string& folder) {
    const json j = read_json_file(folder + "/pipeline.json");
    if (!j.is_object() || !j.contains("pipeline") || j.value("digest", "") != digest_of(j["pipeline"]))
        return std::nullopt;
    return stored_identity{j["pipeline"], j.value("outs", json::object()), j.value("output_directory", ""),
                           j.value("pictures", ""), j.value("depths", json::object())};
}

void restore_outputs(const stored_identity& k, run_setup& s) {
    s.output_directory = k.output_directory;
    s.pictures = k.pictures;
    for (stage_setup& st : s.stages)
        if (k.outs.contains(st.spec.name)) st.spec.settings["out"] = k.outs[st.spec.name];
}

}  // namespace carousel::supervisor
