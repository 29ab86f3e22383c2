#include "supervisor/plan/compatibility.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"
#include "ledger/ledger.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "spec/describe.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

json parameters_identity(const parameter_plan& p) {
    if (!p.schema) return nullptr;
    return {{"schema", p.schema.to_json()}, {"values", p.schema.values_json(p.values)}};
}

// Returns all keys with their resolved values, except `standby`. This key concerns only the supervisor: a
// second supervisor may keep standbys even if the first supervisor kept none.
json stage_json(const stage_setup& s) {
    json j = values_of(s.spec);
    j.erase("standby");
    j.update({{"run", s.program},
              {"python", s.python},
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
    if (s.state) j["state"] = true;
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

namespace fs = std::filesystem;

/// The folder of the pipeline: see folder_of(). The record contains the path that was given to the
/// supervisor; this path may be relative to the supervisor's working directory.
std::string folder_of_run(const run::record& r, const json& identity) {
    std::error_code failed;
    const fs::path at = fs::read_symlink(fmt::format("/proc/{}/cwd", r.supervisor.pid), failed);
    const bool known = !failed && shm::is_alive(r.supervisor);  // checked after the read, so the pid was not
                                                                // reused before the read
    pipeline p;
    p.file = (known ? at / r.file : absolute_path(r.file)).string();
    p.folder = identity.at("folder");
    return folder_of(p);
}

/// Returns the outputs of a stage as [{output, format}]. `stage` comes from a run's identity or from a
/// program's reply; both have the same form.
json outputs_of(const json& stage) {
    json all = json::array();
    if (stage.at("format").is_null()) return all;
    all.push_back({{"output", stage.value("output", "")}, {"format", stage.at("format")}});
    for (const json& more : stage.value("more_outputs", json::array()))
        all.push_back({{"output", more.at("output")}, {"format", more.at("format")}});
    return all;
}

const json* stage_named(const json& run, const std::string& name) {
    const json& all = run.at("stages");
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const json& s) { return s.at("name") == name; });
    return found == all.end() ? nullptr : &*found;
}

/// Returns the name and the format of the ring that an input names as "fork" or "fork.square".
json ring_named(const json& run, const std::string& name) {
    const std::string stage = name.substr(0, name.find('.'));
    const std::string output = stage.size() < name.size() ? name.substr(stage.size() + 1) : "";
    const json* const from = stage_named(run, stage);
    if (from == nullptr) return {{"stage", name}, {"format", nullptr}};
    const json outputs = outputs_of(*from);
    for (std::size_t k = 0; k < outputs.size(); ++k)
        if (output.empty() || outputs[k]["output"] == output)
            return {{"stage", k == 0 ? stage : name}, {"format", outputs[k]["format"]}};
    return {{"stage", name}, {"format", nullptr}};
}

json question_of(const json& run, const json& stage, const std::string& folder) {
    json inputs = json::array(), latest = json::array();
    for (const json& i : stage.at("inputs")) inputs.push_back(ring_named(run, i));
    for (const json& i : stage.at("sampled")) latest.push_back(ring_named(run, i));
    const json& size = run.at("size");
    return {{"stage", stage.at("name")},
            {"width", size.at(0)},
            {"height", size.at(1)},
            {"inputs", inputs},
            {"settings", stage.at("settings")},
            {"fps", run.at("fps")},
            {"sampled", latest},
            {"device", stage.at("device")},
            {"folder", folder}};
}

}  // namespace

environment_override::environment_override(const shm::process_id& of)
    : own_(environ), text_(shm::environment_of(of)) {
    for (std::size_t at = 0; at < text_.size(); at += std::strlen(words_.back()) + 1)
        words_.push_back(text_.data() + at);
    words_.push_back(nullptr);
    if (!text_.empty()) environ = words_.data();
    std::error_code failed;
    own_folder_ = fs::current_path(failed);
    fs::current_path(fmt::format("/proc/{}/cwd", of.pid), failed);
}

environment_override::~environment_override() {
    environ = own_;
    std::error_code failed;
    fs::current_path(own_folder_, failed);
}

plan_source source_of(const pipeline& p) {
    if (p.text.empty()) return {};
    return {absolute_path(p.file).lexically_normal().string(), p.text, to_json(p.overrides),
            p.programs.empty() ? executable_folder() : p.programs};
}

bool same_text(const plan_source& a, const plan_source& b) {
    return !a.text.empty() && a.text == b.text && a.overrides == b.overrides;
}

pipeline pipeline_from(const plan_source& source, const std::string& file) try {
    pipeline p = parse_pipeline(source.text, file, overrides_from(source.overrides));
    p.programs = source.programs;
    return p;
} catch (const json::exception& e) {
    throw config_error(
        fmt::format("{}: the overrides of the command line can't be read: {}", file, e.what()));
}

json identity_of(const run_setup& s) {
    json stages = json::array(), assets = json::array();
    for (const stage_setup& st : s.stages) stages.push_back(stage_json(st));
    for (const asset_setup& a : s.assets)
        assets.push_back({{"name", a.name}, {"bytes", a.bytes}, {"maker", a.maker}, {"users", a.users}});
    json j = values_of(static_cast<const pipeline_spec&>(s));
    // not compared: the stages contain the resolved values
    for (const char* each : {"device", "isolation"}) j.erase(each);
    // not compared: affects only the supervisor's exit code
    for (const char* each : {"allow_dead_letters", "allow_state_loss"}) j.erase(each);
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
    // The number of stages and their names are compared first, because the differences inside the stages mean
    // little if the number or the names differ.
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
    // the texts of the two identities differ, although all values are equal, for example 1 and 1.0
    return "they differ";
}

json common_keys(const json& of, const json& with) {
    json out = of;
    if (of.is_object() && with.is_object()) {
        out = json::object();
        for (const auto& [key, value] : of.items())
            if (with.contains(key)) out[key] = common_keys(value, with[key]);
    } else if (of.is_array() && with.is_array() && of.size() == with.size()) {
        for (std::size_t k = 0; k < of.size(); ++k) out[k] = common_keys(of[k], with[k]);
    }
    return out;
}

void write_identity(const std::string& folder, const json& identity, const run_setup& prepared,
                    const plan_source& source) {
    json outs = json::object();
    for (const stage_setup& s : prepared.stages)
        if (s.spec.settings.contains("out")) outs[s.spec.name] = s.spec.settings["out"];
    const json text{{"digest", digest_of(identity)},
                    {"pipeline", identity},
                    {"outs", outs},
                    {"output_directory", prepared.output_directory},
                    {"pictures", prepared.pictures},
                    {"depths", depths_json(prepared)},
                    {"source", json(source)}};
    shm::write_whole_file(folder + "/pipeline.json",
                          text.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<stored_identity> read_identity(const std::string& folder) {
    const json j = read_json_file(folder + "/pipeline.json");
    if (!j.is_object() || !j.contains("pipeline") || j.value("digest", "") != digest_of(j["pipeline"]))
        return std::nullopt;
    stored_identity out{
        j["pipeline"],           j.value("outs", json::object()),   j.value("output_directory", ""),
        j.value("pictures", ""), j.value("depths", json::object()), {}};
    if (j.contains("source")) read_known_fields(j["source"], out.source);
    return out;
}

void restore_outputs(const stored_identity& k, run_setup& s) {
    s.output_directory = k.output_directory;
    s.pictures = k.pictures;
    for (stage_setup& st : s.stages)
        if (k.outs.contains(st.spec.name)) st.spec.settings["out"] = k.outs[st.spec.name];
}

void require_able_successor(const run::record& r, const std::string& stage) try {
    const auto known = read_identity(r.folder);
    if (!known) return;
    const json* const was = stage_named(known->identity, stage.substr(0, stage.find('.')));
    if (was == nullptr || was->at("run") == "port") return;
    stage_spec s;
    s.name = was->at("name");
    s.run = was->at("run");
    s.python = was->at("python");
    s.settings = was->at("settings");
    s.at.file = r.file;
    const environment_override environment(r.supervisor);
    const json is = query_program(s, s.run, s.python,
                                  question_of(known->identity, *was, folder_of_run(r, known->identity)));
    if (is.value("ends", false) && !was->value("ends", false))
        throw config_error(
            fmt::format("stage \"{}\": the new {} may end its stream, but the run was started for a stage "
                        "that does not; end the run and start it again",
                        s.name, s.run));
    if (outputs_of(is) != outputs_of(*was))
        throw config_error(
            fmt::format("stage \"{}\": the new {} produces frames of another format, but the run's memory "
                        "has the old format: end the run and start it again",
                        s.name, s.run));
} catch (const json::exception&) {  // the run is of another version, so its stages cannot be checked here
}

}  // namespace carousel::supervisor
