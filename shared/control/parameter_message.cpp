#include "control/parameter_message.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::run {

using nlohmann::json;

json to_json(const parameter_state& s) {
    json j{{"ok", true},
           {"schema", s.schema ? s.schema.to_json() : json()},
           {"values", s.values},
           {"number", s.number},
           {"from", s.from}};
    if (!s.message.empty()) j["message"] = s.message;
    return j;
}

parameter_state parameters_from(const json& answer) {
    try {
        parameter_state s;
        if (!answer.at("schema").is_null()) s.schema = ring::parameter_schema::from_json(answer["schema"]);
        s.values = answer.at("values");
        s.number = answer.at("number");
        s.from = answer.at("from");
        s.message = answer.value("message", "");
        return s;
    } catch (const json::exception& e) {
        throw config_error(
            fmt::format("the supervisor's answer on the parameters can't be read ({}): check that both "
                        "programs have the same version",
                        e.what()));
    }
}

}  // namespace carousel::run
