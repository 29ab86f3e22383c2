#include "supervisor/plan/successor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/io.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "shm/process_id.hpp"
#include "spec/describe.hpp"
#include "supervisor/plan/run_identity.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// While this object exists, this process has the environment of another process: the program must be queried
/// in the environment in which its supervisor would start it, for example another interpreter
/// (CAROUSEL_PYTHON) or PYTHONPATH.
class environment_override {
public:
    explicit environment_override(const shm::process_id& of) : own_(environ) {
        const bool same = of.pid > 0 && shm::start_time_of(of.pid) == of.start_time;
        text_ = same ? read_file(fmt::format("/proc/{}/environ", of.pid)).value_or("") : "";
        for (std::size_t at = 0; at < text_.size(); at += std::strlen(words_.back()) + 1)
            words_.push_back(text_.data() + at);
        words_.push_back(nullptr);
        if (!text_.empty()) environ = words_.data();
    }
    ~environment_override() { environ = own_; }
    environment_override(const environment_override&) = delete;
    environment_override& operator=(const environment_override&) = delete;

private:
    char** own_;
    std::string text_;
    std::vector<char*> words_;
};

/// The folder of the pipeline file, which the record names by the path that its supervisor was given.
std::string folder_of_file(const run::record& r) {
    std::error_code failed;
    const fs::path at = fs::read_symlink(fmt::format("/proc/{}/cwd", r.supervisor.pid), failed);
    const fs::path file = failed ? absolute_path(r.file) : at / r.file;
    return file.parent_path().lexically_normal().string();
}

/// The outputs of a stage as [{output, format}], read from a run's identity or from a program's reply, which
/// have the same form.
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

/// The name and the format of an input, "fork" or "fork.square".
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

void require_able_successor(const run::record& r, const std::string& stage) try {
    const auto known = read_identity(r.folder);
    if (!known) return;
    const json* const was = stage_named(known->identity, stage.substr(0, stage.find('.')));
    if (was == nullptr || was->at("run") == "port") return;
    stage_spec s;
    s.name = was->at("name");
    s.run = was->at("run");
    s.settings = was->at("settings");
    s.at.file = r.file;
    const environment_override environment(r.supervisor);
    const json is = query_program(s, s.run, question_of(known->identity, *was, folder_of_file(r)));
    if (is.value("ends", false) && !was->value("ends", false))
        throw config_error(
            fmt::format("stage \"{}\": the new {} may end its stream, but the run was started for a stage "
                        "that does not: end the run and start it again",
                        s.name, s.run));
    if (outputs_of(is) != outputs_of(*was))
        throw config_error(
            fmt::format("stage \"{}\": the new {} produces frames of another format, but the run's memory "
                        "has the old format: end the run and start it again",
                        s.name, s.run));
} catch (const json::exception&) {  // the run is of another version: nothing is known here
}

}  // namespace carousel::supervisor
