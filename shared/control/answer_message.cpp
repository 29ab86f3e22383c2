#include "control/answer_message.hpp"

#include <utility>

namespace carousel::run {

using nlohmann::json;

verdict carried_out(std::string message) { return {true, std::move(message), std::nullopt, false}; }
verdict refused(int code, std::string message) { return {false, std::move(message), code, false}; }

json to_json(const verdict& v) {
    json j{{"ok", v.ok}};
    if (v.message) j["message"] = *v.message;
    if (v.code) j["code"] = *v.code;
    if (v.later) j["later"] = true;
    return j;
}

verdict read_verdict(const json& answer) {
    verdict v;
    if (!answer.is_object()) return v;
    const auto is_true = [&](const char* key) {
        const auto at = answer.find(key);
        return at != answer.end() && at->is_boolean() && at->get<bool>();
    };
    v.ok = is_true("ok");
    v.later = is_true("later");
    if (const auto at = answer.find("message"); at != answer.end() && at->is_string())
        v.message = at->get<std::string>();
    if (const auto at = answer.find("code"); at != answer.end() && at->is_number_integer())
        v.code = at->get<i64>();
    return v;
}

}  // namespace carousel::run
