#include "viewer/watch/stage_settings.hpp"

#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::viewer {
namespace {

using nlohmann::json;

/// The member of an object, or null.
json member(const json& of, const char* name) {
    const auto at = of.is_object() ? of.find(name) : of.end();
    return at == of.end() ? json() : *at;
}

}  // namespace

stage_settings read_stage_settings(const std::string& run_folder) {
    stage_settings out;
    const json stages = member(member(read_json_file(run_folder + "/pipeline.json"), "pipeline"), "stages");
    if (!stages.is_array()) return out;
    for (const json& stage : stages) {
        const json name = member(stage, "name"), settings = member(stage, "settings");
        if (!name.is_string() || !settings.is_object() || settings.empty()) continue;
        auto& of = out[name.get<std::string>()];
        for (const auto& [key, value] : settings.items())
            of.emplace_back(key, value.is_string()
                                     ? value.get<std::string>()
                                     : value.dump(-1, ' ', false, json::error_handler_t::replace));
    }
    return out;
}

}  // namespace carousel::viewer
